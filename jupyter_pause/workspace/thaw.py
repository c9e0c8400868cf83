# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Noticing from inside that this process was frozen and woke up again, perhaps on another machine (cases.md S24).

No clock alone can tell. In some systems the wall clock jumps and the steady clock stood still, in others both jump, or
the steady clock starts elsewhere, or neither shows anything; a laptop lid and a blocked event loop make gaps too. So a
gap is only a reason to look, and what decides is which pod this is: the service account token that the kubelet mounts
names it, and reading a file opens no connection. Where the token does not say, the owner is asked.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from jupyter_pause.clock import Clock

#: Seconds that a tick may come late without meaning anything (a busy machine, a slow disk).
TOLERANCE = 5.0

Verdict = Literal["thawed", "same_pod", "ask"]


@dataclass(frozen=True)
class Gap:
    """Seconds that passed by each clock beyond those that were slept; negative when a clock went back."""

    wall: float
    steady: float

    @property
    def is_suspicious(self) -> bool:
        """Whether something happened between two ticks that is worth a look."""
        return abs(self.wall) > TOLERANCE or abs(self.steady) > TOLERANCE

    @property
    def frozen_seconds(self) -> float | None:
        """How long it was, by the clock that saw it: the wall clock's word is taken unless it went back."""
        longest = max(self.wall, self.steady)
        return round(longest, 3) if longest > TOLERANCE else None


class GapWatch:
    """Looks at both clocks between two ticks."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.restart()

    def restart(self) -> None:
        """Count from now on."""
        self._wall, self._steady = self._clock.now(), self._clock.monotonic()

    def look(self, slept: float) -> Gap:
        """What passed since the last look beyond the `slept` seconds that were meant to."""
        wall, steady = self._wall, self._steady
        self.restart()
        return Gap(
            wall=round((self._wall - wall).total_seconds() - slept, 3),
            steady=round(self._steady - steady - slept, 3),
        )


@dataclass(frozen=True)
class Whereabouts:
    """Where this process is, as far as files tell without asking anybody."""

    pod_uid: str | None = None
    namespace_id: str | None = None

    def is_elsewhere(self, now: Whereabouts) -> bool | None:
        """Whether `now` is another pod than this; None when nobody can tell from here."""
        if self.pod_uid is None or now.pod_uid is None:
            return None
        return self.pod_uid != now.pod_uid


class PodIdentity:
    """Reads where we are. The token is parsed again only when its file changed; it is never kept or shown."""

    def __init__(self, token_file: Path | None) -> None:
        self._token_file = token_file
        self._seen: tuple[int, int, int] | None = None
        self._pod_uid: str | None = None

    def look(self) -> Whereabouts:
        """Where this process is now. Blocks for the time of a local `stat`; never raises."""
        return Whereabouts(self._token_pod(), process_namespace())

    def _token_pod(self) -> str | None:
        if self._token_file is None:
            return None
        try:
            status = os.stat(self._token_file)
            seen = (status.st_dev, status.st_ino, status.st_mtime_ns)
            if seen != self._seen:
                self._seen, self._pod_uid = seen, pod_of_token(self._token_file.read_text())
        except OSError:
            return self._pod_uid  # just being replaced: look again at the next tick
        return self._pod_uid


def pod_of_token(token: str) -> str | None:
    """The uid of the pod that a bound service account token was made for (claim `kubernetes.io`), unverified."""
    parts = token.strip().split(".")
    if len(parts) != 3:
        return None
    try:
        raw = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        claims: Any = json.loads(raw)
        uid = claims["kubernetes.io"]["pod"]["uid"]
    except (ValueError, binascii.Error, KeyError, TypeError):
        return None
    return uid if isinstance(uid, str) and uid else None


def process_namespace() -> str | None:
    """This process's pid namespace together with the machine's boot: another pod or another container has another."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{os.readlink('/proc/self/ns/pid')}@{boot}"
    except OSError:
        return None


def judge(before: Whereabouts, now: Whereabouts, gap: Gap) -> Verdict:
    """What two ticks mean. `ask`: something passed, and only the owner knows whether this is another pod."""
    elsewhere = before.is_elsewhere(now)
    if elsewhere is True:
        return "thawed"
    if elsewhere is None and gap.is_suspicious:
        return "ask"
    return "same_pod"
