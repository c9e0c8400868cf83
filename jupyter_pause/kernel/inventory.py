# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What the kernel holds and what would become of it, without ever getting in the way of a cell.

Names, types and shallow sizes are read at once on the control thread. Fates and deep sizes come from the engine's
scanner, which looks into objects and so must not race with a running cell: it works on the main thread, between cells,
in slices of at most 20 ms, and is thrown away when a cell has run.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Callable

from . import background, history

if TYPE_CHECKING:
    from .agent import Agent

#: The longest slice of scanning, and the pause between two, in seconds.
SLICE, BREATH = 0.02, 0.005
#: Types whose own size may be asked for on any thread: their __sizeof__ runs no Python code.
_PLAIN = (int, float, complex, bool, str, bytes, bytearray, list, tuple, dict, set, frozenset, range, type(None))


class Inventory:
    """Answers are dicts: ``{"taken_at", "age", "complete", "busy", "variables", "losses", ...}``."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._background = background.Background(agent.kernel)
        self._lock = threading.Lock()
        self._waiting: list[_Waiter] = []
        self._scanner: Any = None
        self._scanned_cells: int | None = None
        self._scheduled = False
        self._last: dict[str, Any] | None = None
        self._last_cells: int | None = None

    # --- control thread -----------------------------------------------------------------------------------------

    def answer(self, wait: float, send: Callable[[dict[str, Any]], None]) -> None:
        """Call `send(answer)` on the control thread: at once, or when the scan is complete or `wait` seconds passed.

        A busy kernel answers at once with what was known last (and its age).
        """
        current = self._current()
        if current is not None or self._busy() or wait <= 0 or self._agent.shell is None:
            if current is None and not self._busy():
                self._schedule()
            send(self._describe(current))
            return
        waiter = _Waiter(send)
        with self._lock:
            self._waiting.append(waiter)
        self._control_loop().call_later(wait, self._give_up, waiter)
        self._schedule()

    def _give_up(self, waiter: _Waiter) -> None:
        with self._lock:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
        waiter.send_once(self._describe(self._current()))

    def _control_loop(self) -> Any:
        thread = getattr(self._agent.kernel, "control_thread", None)
        return thread.io_loop if thread is not None else self._agent.kernel.io_loop

    def _busy(self) -> bool:
        return self._agent.gate.running

    def _current(self) -> dict[str, Any] | None:
        """The last scan if no cell has run since, else None."""
        if self._last is not None and self._last_cells == self._agent.gate.cells_run and not self._busy():
            return self._last
        return None

    def _describe(self, scan: dict[str, Any] | None) -> dict[str, Any]:
        if scan is None:
            scan = self._last if self._busy() and self._last is not None else self._shallow()
        answer = dict(scan)
        answer["age"] = round(time.monotonic() - answer.pop("_monotonic"), 3)
        answer["busy"] = self._busy()
        answer["prefix"] = sys.prefix
        for name in ("threads", "tasks", "processes", "connections"):
            answer[name] = getattr(self._background, name)()
        shell = self._agent.shell
        answer["files"] = self._background.files(dict(shell.user_ns) if shell is not None else {})
        answer["losses"] = answer["losses"] + self.background_losses()
        return answer

    def background_losses(self) -> list[dict[str, Any]]:
        """Losses that no variable stands for: threads, tasks, scheduled calls, children, values without a name."""
        shell = self._agent.shell
        if shell is None:
            return []
        hidden = history.hidden_names(shell)  # a displayed output is no variable that could stand for a thread
        values = [value for name, value in dict(shell.user_ns).items() if name not in hidden]
        return history.nameless_losses(shell.user_ns) + self._background.losses(values)

    def _shallow(self) -> dict[str, Any]:
        """Names, types and the sizes that can be had without looking inside; fates are unknown until scanned."""
        shell = self._agent.shell
        variables = []
        if shell is not None:
            hidden = history.hidden_names(shell)
            for name, value in list(shell.user_ns.items()):
                if name not in hidden:
                    variables.append(_shallow_item(name, value))
        return _scan(variables, [], complete=False)

    # --- main thread --------------------------------------------------------------------------------------------

    def cell_ended(self) -> None:
        """What a scan saw so far is old; whoever waits gets a new one. Called on the cell's own thread."""
        self._scanner = None
        with self._lock:
            waiting = bool(self._waiting)
        if waiting:
            self._schedule()

    def _schedule(self) -> None:
        loop = getattr(self._agent.kernel, "io_loop", None)
        with self._lock:
            if self._scheduled or loop is None:
                return
            self._scheduled = True
        loop.add_callback(self._slice)

    def _slice(self) -> None:
        """One slice on the main thread; the loop handles messages before the next."""
        with self._lock:
            self._scheduled = False
        if self._busy() or self._agent.saver.active:
            return  # the end of the cell schedules the next one
        try:
            done = self._step()
        except Exception as error:
            self._finish(_scan([], [], complete=False, problem="{}: {}".format(type(error).__name__, error)))
            return
        if done:
            return
        with self._lock:
            if self._scheduled:
                return
            self._scheduled = True
        self._agent.kernel.io_loop.call_later(BREATH, self._slice)

    def _step(self) -> bool:
        agent = self._agent
        if self._scanner is None or self._scanned_cells != agent.gate.cells_run:
            self._scanner = agent.scanner()
            self._scanned_cells = agent.gate.cells_run
        scanner, number = self._scanner, self._scanned_cells
        if not scanner.step(SLICE):
            return False
        self._last_cells = number
        self._finish(self._result(scanner))
        return True

    def scan_now(self) -> dict[str, Any]:
        """A complete scan on the calling (main) thread, for `%pause` inside its own cell; the same shape."""
        scanner = self._agent.scanner()
        while not scanner.step(3600.0):
            pass
        return self._describe(self._result(scanner))

    def _result(self, scanner: Any) -> dict[str, Any]:
        found = scanner.result()
        return _scan(found["variables"], found["losses"], complete=True)

    def _finish(self, result: dict[str, Any]) -> None:
        self._scanner = None
        self._last = result
        with self._lock:
            waiting, self._waiting = self._waiting, []
        if waiting:
            self._control_loop().add_callback(self._send_all, waiting, result)

    def _send_all(self, waiting: list[_Waiter], result: dict[str, Any]) -> None:
        answer = self._describe(result)
        for waiter in waiting:
            waiter.send_once(answer)


class _Waiter:
    """One question that waits for a scan; answered exactly once, on the control thread."""

    def __init__(self, send: Callable[[dict[str, Any]], None]) -> None:
        self._send: Callable[[dict[str, Any]], None] | None = send

    def send_once(self, answer: dict[str, Any]) -> None:
        send, self._send = self._send, None
        if send is not None:
            send(answer)


def _scan(
    variables: list[dict[str, Any]], losses: list[dict[str, Any]], complete: bool, problem: str | None = None
) -> dict[str, Any]:
    now = time.time()
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + ".{:03d}Z".format(int(now * 1000) % 1000)
    return {
        "taken_at": moment,
        "_monotonic": time.monotonic(),
        "complete": complete,
        "problem": problem,
        "variables": variables,
        "losses": losses,
    }


#: How a type's names are read without asking its metaclass, which may be a person's own.
_module_of, _qualname_of = type.__dict__["__module__"].__get__, type.__dict__["__qualname__"].__get__


def _shallow_item(name: str, value: Any) -> dict[str, Any]:
    return {
        "name": name,
        "kind": "data",
        "bytes": _shallow_size(value),
        "complete": False,
        "fate": "unknown",
        "reason": None,
        "type": _type_name(type(value)),
        "details": {},
    }


def _type_name(kind: type) -> str:
    module, name = _module_of(kind), _qualname_of(kind)
    return "{}.{}".format(module, name) if type(module) is str and module != "builtins" else name


def _shallow_size(value: Any) -> int | None:
    """Bytes of the object itself, with the buffer it owns; None where asking would run code of its own."""
    kind = type(value)
    if kind in _PLAIN:
        return sys.getsizeof(value)
    if kind is getattr(sys.modules.get("numpy"), "ndarray", None):
        return int(value.nbytes)
    if kind is getattr(sys.modules.get("array"), "array", None):
        return int(value.itemsize * len(value))
    return None
