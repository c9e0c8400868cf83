# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Which kernels are saved first when there may not be time for all. Pure: no clock, no input or output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The part of the time left that is planned with: sizes are "at least" and disks have bad days.
USABLE = 0.8
#: Steps per second in which times are added up.
STEPS = 10


@dataclass(frozen=True)
class Candidate:
    """A kernel to be saved. `value`: bytes that a person made; `seconds`: what saving it will take, guessed."""

    kernel_id: str
    value: int
    seconds: float
    busy: bool = False


@dataclass(frozen=True)
class Plan:
    """Kernels by id. `first` fits into the time; `then` is tried in what is left of it; `busy` run a cell."""

    first: list[str]
    then: list[str]
    busy: list[str]


def plan(candidates: Sequence[Candidate], seconds: float) -> Plan:
    """The order of saving, for `seconds` that are left.

    Idle kernels come before those that run a cell. Of the idle ones, `first` is the choice that keeps the most bytes of
    all choices that fit. Within each group the quickest goes first, so that a wrong guess costs the fewest kernels.
    """
    idle = [c for c in candidates if not c.busy]
    chosen = _most_valuable(idle, seconds * USABLE)
    return Plan(
        first=_quickest_first([c for c in idle if c.kernel_id in chosen]),
        then=_quickest_first([c for c in idle if c.kernel_id not in chosen]),
        busy=_quickest_first([c for c in candidates if c.busy]),
    )


def _quickest_first(candidates: Sequence[Candidate]) -> list[str]:
    return [c.kernel_id for c in sorted(candidates, key=lambda c: (c.seconds, -c.value))]


def _most_valuable(candidates: Sequence[Candidate], seconds: float) -> frozenset[str]:
    """The classic knapsack over tenths of a second: for each time used, the best choice so far."""
    best: dict[int, tuple[int, frozenset[str]]] = {0: (0, frozenset())}
    limit = int(seconds * STEPS)
    for candidate in candidates:
        cost = max(1, round(candidate.seconds * STEPS))
        for used, (value, chosen) in sorted(best.items(), reverse=True):
            grown = value + candidate.value
            if used + cost <= limit and grown > best.get(used + cost, (0, chosen))[0]:
                best[used + cost] = (grown, chosen | {candidate.kernel_id})
    return max(best.values(), key=lambda choice: (choice[0], len(choice[1])))[1]
