# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Which kernels are saved first when there is not time for all: tables, and what must hold for every table."""

from __future__ import annotations

import signal
from itertools import combinations
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from jupyter_pause.states import StoppedKernel, StopReport
from jupyter_pause.stopping.plan import USABLE, Candidate, plan
from jupyter_pause.stopping.record import StopRecord, corrected
from jupyter_pause.stopping.signals import StopSignals

MB, GB = 10**6, 10**9


def kernel(name: str, value: int, seconds: float, busy: bool = False) -> Candidate:
    return Candidate(name, value, seconds, busy)


def test_all_that_fit_go_first_and_the_quickest_leads() -> None:
    found = plan([kernel("big", 3 * GB, 11), kernel("small", MB, 1), kernel("middle", 300 * MB, 2)], 25)
    assert (found.first, found.then, found.busy) == (["small", "middle", "big"], [], [])


def test_one_that_cannot_fit_waits_until_the_others_are_safe() -> None:
    found = plan([kernel("huge", 60 * GB, 201), kernel("a", 50 * MB, 1.2), kernel("b", 900 * MB, 4)], 25)
    assert (found.first, found.then) == (["a", "b"], ["huge"])


def test_the_choice_keeps_the_most_bytes() -> None:
    candidates = [kernel("model", 5 * GB, 17), *(kernel(f"data{n}", 1 * GB, 4.3) for n in range(3))]
    found = plan(candidates, 25)
    assert found.first == ["model"] and len(found.then) == 3


def test_a_kernel_that_holds_nothing_takes_no_ones_place() -> None:
    found = plan([kernel("empty", 0, 1.0), kernel("work", 10 * MB, 1.0)], 2.0)
    assert (found.first, found.then) == (["work"], ["empty"])


def test_busy_kernels_come_after_idle_ones_however_much_they_hold() -> None:
    found = plan([kernel("training", 5 * GB, 2, busy=True), kernel("idle", MB, 1)], 25)
    assert (found.first, found.then, found.busy) == (["idle"], [], ["training"])


CANDIDATES = st.lists(
    st.builds(
        lambda value, tenths, busy: (value, tenths / 10, busy),
        st.integers(0, 10**10),
        st.integers(1, 300),
        st.booleans(),
    ),
    max_size=6,
)


@given(CANDIDATES, st.integers(0, 60))
def test_nobody_is_forgotten_and_no_better_choice_exists(rows: list[tuple[int, float, bool]], seconds: int) -> None:
    candidates = [Candidate(str(n), *row) for n, row in enumerate(rows)]
    found = plan(candidates, seconds)
    assert sorted(found.first + found.then + found.busy) == sorted(c.kernel_id for c in candidates)
    idle = [c for c in candidates if not c.busy]
    limit = int(seconds * USABLE * 10)
    best = max(
        sum(c.value for c in some)
        for size in range(len(idle) + 1)
        for some in combinations(idle, size)
        if sum(round(c.seconds * 10) for c in some) <= limit
    )
    assert sum(c.value for c in idle if c.kernel_id in found.first) == best
    assert sum(round(c.seconds * 10) for c in idle if c.kernel_id in found.first) <= limit


class FixedClock:
    def __init__(self) -> None:
        self.second = 100.0

    def monotonic(self) -> float:
        return self.second


def test_cause_of_a_stop() -> None:
    clock = FixedClock()
    signals = StopSignals(clock, {})  # type: ignore[arg-type]
    assert signals.cause(stop_called=False) == "request"
    assert signals.cause(stop_called=True) == "itself"
    signals.note(signal.SIGINT)
    assert signals.cause(stop_called=True) == "terminal"
    assert signals.cause(stop_called=False) == "request", "Ctrl-C was answered with no, then somebody used the menu"
    signals.note(signal.SIGTERM)
    clock.second = 107.0
    signals.note(signal.SIGTERM)
    assert signals.cause(stop_called=True) == "ordered" and signals.ordered_at == 100.0


def test_jupyterhub_stops_local_servers_by_sigint_and_that_is_an_order() -> None:
    signals = StopSignals(FixedClock(), {"JUPYTERHUB_API_URL": "http://127.0.0.1:8081/hub/api"})  # type: ignore[arg-type]
    signals.note(signal.SIGINT)
    assert signals.cause(stop_called=True) == "ordered"


def test_sigint_by_jupyterhub_stops_in_order_where_python_would_break_off() -> None:
    stops: list[str] = []
    environ = {"JUPYTERHUB_API_URL": "http://127.0.0.1:8081/hub/api"}
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        signals = StopSignals(FixedClock(), environ, stop=lambda: stops.append("stop"))  # type: ignore[arg-type]
        signals.install()
        signal.raise_signal(signal.SIGINT)
        signals.uninstall()
        assert stops == ["stop"] and signals.ordered_at == 100.0
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_handlers_that_are_there_are_called_and_given_back() -> None:
    came: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: came.append(number))
    own = signal.getsignal(signal.SIGTERM)
    try:
        signals = StopSignals(FixedClock(), {})  # type: ignore[arg-type]
        signals.install()
        signals.install()
        signal.raise_signal(signal.SIGTERM)
        assert came == [signal.SIGTERM] and signals.ordered_at == 100.0
        signals.uninstall()
        assert signal.getsignal(signal.SIGTERM) is own
    finally:
        signal.signal(signal.SIGTERM, before)


def test_record_of_a_stop_is_private_per_root_dir_and_corrected_by_what_came_back(tmp_path: Path) -> None:
    record, other = StopRecord(tmp_path, "/home/a"), StopRecord(tmp_path, "/home/b")
    kernels = [
        StoppedKernel(kernel="lost", path="a.ipynb", saved=False, code="stopped_unsaved"),
        StoppedKernel(kernel="lived", path="b.ipynb", saved=False, code="stopped_unsaved"),
    ]
    record.write(
        StopReport.model_validate({"at": "2026-01-01T00:00:00Z", "cause": "ordered", "limit": 25, "kernels": kernels})
    )
    assert other.read() is None
    found = record.read()
    assert found is not None and found.seconds is None
    assert next(iter((tmp_path / "stops").iterdir())).stat().st_mode & 0o777 == 0o600
    lost, lived = corrected(found, {"lived": None}).kernels
    assert not lost.saved and lost.code == "stopped_unsaved"
    assert lived.saved and lived.code is None
    record.forget()
    assert record.read() is None
