# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The steps of the drill, in order. Each is a promise that held, or did not; nothing is taken for granted."""

from __future__ import annotations

import ast
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psutil

from jupyter_pause.cli.output import size
from jupyter_pause.cli.server import CliError

from . import cells
from .channel import CellError, KernelChannel, value_of
from .exact import ExactRound
from .gpu import PROMISES as GPU_PROMISES
from .gpu import GpuRound
from .report import Check, Report
from .server import DrillServer, DrillServerError, is_alive

NOTEBOOK = "drill.ipynb"
MIB = 1 << 20
#: Seconds until a process that was ended must be gone.
GONE_LIMIT = 10.0
#: Seconds between two looks at an operation.
POLL = 0.1


@dataclass
class DrillOptions:
    """What to try. `size`: of the large array, bytes; `gpu`: arrays on a GPU too.

    `after_pause`, `after_resume` and `nvml` are faults and a driver in tests.
    """

    keep: bool = False
    kernel: str = "python3"
    size: int = 128 * MIB
    gpu: bool = False
    nvml: Any = None
    server_options: list[str] = field(default_factory=list)
    after_pause: Callable[[DrillServer], None] = lambda server: None
    after_resume: Callable[[DrillServer, str], None] = lambda server, kernel_id: None


class BrokenError(Exception):
    """A promise that did not hold; what follows makes no sense any more."""


@dataclass
class Paused:
    """What was noted when the kernel was paused."""

    pid: int
    checkpoint: str
    proof: dict[str, Any]


class Drill:
    """One run. `tell` is called with every check as it is decided."""

    def __init__(self, options: DrillOptions, tell: Callable[[Check], None]) -> None:
        self._options = options
        self._tell = tell
        self._began = time.monotonic()
        self._report = Report()
        self._server = DrillServer(options.server_options)
        self._channel: KernelChannel | None = None
        self._session: dict[str, Any] = {}
        self._gpu = (
            GpuRound(self._server, options.kernel, self._check, options.size, options.nvml) if options.gpu else None
        )

    def run(self) -> Report:
        """Do everything, clean up whatever happened, and report. Raises KeyboardInterrupt after cleaning up."""
        report = self._report
        report.folder = str(self._server.base) if self._options.keep else None
        try:
            self._rounds()
        except BrokenError:
            self._skip_the_rest()
        except Exception as error:  # a fault of the drill itself must neither pass for a success nor leave anything
            self._decide("drill", "the drill itself works", False, f"{type(error).__name__}: {error}")
            self._skip_the_rest()
        finally:
            self._clean_up()
            report.seconds = time.monotonic() - self._began
        return report

    # --- bookkeeping --------------------------------------------------------------------------------------------

    @contextmanager
    def _check(self, name: str, promise: str) -> Iterator[Check]:
        """A promise: kept when the block ends well, else broken, and then the drill ends (BrokenError)."""
        check = Check(name, promise)
        began = time.monotonic()
        try:
            yield check
            check.verdict = "kept"
        except (BrokenError, CellError, CliError, DrillServerError, OSError) as error:
            check.verdict, check.detail = "broken", str(error) or type(error).__name__
            raise BrokenError(check.detail) from error
        finally:
            now = time.monotonic()
            check.seconds, check.at = now - began, now - self._began
            self._note(check)

    def _note(self, check: Check) -> None:
        self._report.checks.append(check)
        self._tell(check)

    def _decide(self, name: str, promise: str, held: bool, detail: str) -> None:
        """A promise that was compared already; the drill goes on either way."""
        check = Check(name, promise, "kept" if held else "broken", detail, at=time.monotonic() - self._began)
        self._note(check)

    def _skip_the_rest(self) -> None:
        """What was not reached is listed as such: a short report must not look like a good one."""
        done = {check.name for check in self._report.checks}
        for name, promise in planned(gpu=self._options.gpu):
            if name not in done and name != "clean_up":
                self._note(Check(name, promise, at=time.monotonic() - self._began))

    # --- the plan -----------------------------------------------------------------------------------------------

    def _rounds(self) -> None:
        if self._gpu is not None:
            self._gpu.look()
        self._start()
        before = self._build()
        self._tell_fresh_from_restored(before)
        self._refuse_to_lose()
        self._name_a_lie()
        paused = self._pause("in_place", before)
        self._options.after_pause(self._server)
        queued = self._send_while_paused()
        self._resume("in_place", paused)
        self._queued_ran(queued, before)
        self._compare("in_place", self._expected_after_queue(paused.proof), paused)

        paused = self._pause("restart", self._change())
        self._options.after_pause(self._server)
        self._kill_server()
        self._start_again()
        self._resume("restart", paused)
        self._compare("restart", paused.proof, paused)

        if self._gpu is not None:
            self._report.versions["on the GPU"] = self._gpu.run()
        exact = ExactRound(self._server, self._options.kernel, self._check)
        self._report.versions["exact snapshots"] = exact.run()
        if self._gpu is not None:
            self._report.versions["exact snapshots with the GPU"] = self._gpu.run_exactly()

    def _start(self) -> None:
        with self._check("start", PROMISES["start"]) as check:
            pid = self._server.start()
            check.detail = f"pid {pid}, folder {self._server.base}"
        with self._check("notebook", PROMISES["notebook"]) as check:
            self._session = self._server.open_notebook(NOTEBOOK, self._options.kernel)
            self._connect()
            check.detail = f"kernel {self._options.kernel}, id {self.kernel_id[:8]}"

    @property
    def kernel_id(self) -> str:
        """The id that must stay the same throughout."""
        kernel_id: str = self._session["kernel"]["id"]
        return kernel_id

    def _connect(self, kernel_id: str | None = None) -> KernelChannel:
        try:
            channel = KernelChannel(self._server.url, self._server.token, kernel_id or self.kernel_id)
        except Exception as error:
            raise BrokenError(f"the WebSocket could not be opened ({type(error).__name__}: {error})") from error
        if kernel_id is None:
            if self._channel is not None:
                self._channel.close()
            self._channel = channel
        return channel

    def _run(self, code: str) -> None:
        assert self._channel is not None
        self._channel.run(code)

    def _probe(self, channel: KernelChannel | None = None) -> dict[str, Any]:
        used = channel or self._channel
        assert used is not None
        text = used.run(cells.PROBE, expression=cells.PROBE_EXPRESSION, history=False)
        answer: dict[str, Any] = json.loads(ast.literal_eval(str(text)))
        return answer

    def _build(self) -> dict[str, Any]:
        """Build the state; returns what is noted of it."""
        (self._server.root / cells.FILE_NAME).write_text(cells.FILE_CONTENT, encoding="utf-8")
        with self._check("build", PROMISES["build"]) as check:
            self._run(cells.BUILD.format(size=self._options.size, file=cells.FILE_NAME))
            found = self._probe()
            broken = [name for name in cells.PROMISES if "error" in found.get(name, {"error": "missing"})]
            if broken or found["generator"].get("value") != "alive":
                raise BrokenError(f"could not be built: {', '.join(broken) or 'generator'}")
            pid = found["pid"]["value"]
            held = sum(_rss(process) for process in self._server.remember_tree(pid))
            if held < self._options.size:
                raise BrokenError(f"the kernel holds {size(held)}, less than the array of {size(self._options.size)}")
            check.measured = {"rss": held, "pid": pid}
            self._report.versions["kernel's Python"] = str(found["python"]["value"])
            self._report.versions["kernel's numpy"] = str(found["numpy"]["value"] or "none")
            check.detail = f"process {pid} holds {size(held)}"
        return found

    def _change(self) -> dict[str, Any]:
        """Change the state, so that the first checkpoint is not enough for the second round; returns what is noted."""
        with self._check("restart.change", PROMISES["change"]) as check:
            token = self._probe()["token"]
            self._run(cells.CHANGE)
            found = self._probe()
            if "value" not in found["token"] or found["token"] == token:
                raise BrokenError("the token is the old one")
            check.detail = "a new token, other values"
        return found

    def _tell_fresh_from_restored(self, before: dict[str, Any]) -> None:
        """The control: with a fresh kernel every comparison must fail, else it proves nothing."""
        with self._check("control", PROMISES["control"]) as check:
            kernel = self._server.jupyter("POST", "api/kernels", {"name": self._options.kernel})
            channel = self._connect(kernel["id"])
            try:
                fresh = self._probe(channel)
                self._server.remember_tree(fresh["pid"]["value"])
            finally:
                channel.close()
                self._server.jupyter("DELETE", f"api/kernels/{kernel['id']}")
            same = [found.name for found in cells.compare(before, fresh) if found.same]
            if same or cells.generator_says_what_it_was(fresh)[0]:
                raise BrokenError(f"a fresh kernel would pass for a restored one: {', '.join(same) or 'generator'}")
            check.detail = f"all {len(cells.PROMISES)} comparisons fail there"

    def _refuse_to_lose(self) -> None:
        with self._check("loss_named", PROMISES["loss_named"]) as check:
            inventory = self._server.api.get("inventory", kernel=self.kernel_id, wait="20")
            names = [loss["path"] for loss in inventory["losses"]]
            if names != [cells.EXPECTED_LOSS]:
                raise BrokenError(f"expected {cells.EXPECTED_LOSS}, the list says {', '.join(names) or 'nothing'}")
            check.detail = f"{names[0]}: {inventory['losses'][0]['reason']}"
        with self._check("refused", PROMISES["refused"]) as check:
            try:
                operation = self._server.api.post("pause", body={"kernels": [self.kernel_id]})["operation"]
            except CliError as error:
                if error.code != "would_lose":
                    raise
                check.detail = "would_lose"
            else:
                ended = self._server.ended(operation)
                raise BrokenError(f"the pause was {ended['state']} without anybody's consent")

    def _name_a_lie(self) -> None:
        """In a kernel of its own: what only loading shows is named while its process still runs."""
        with self._check("lie_named", PROMISES["lie_named"]) as check:
            kernel = self._server.jupyter("POST", "api/kernels", {"name": self._options.kernel})["id"]
            channel = self._connect(kernel)
            try:
                channel.run(cells.LIE)
                self._server.remember_tree(self._probe(channel)["pid"]["value"])
                names = self._asked_about(kernel)
                if names != [cells.EXPECTED_LIE]:
                    raise BrokenError(f"expected {cells.EXPECTED_LIE}, asked about {', '.join(names) or 'nothing'}")
                if "error" in self._probe(channel).get("pid", {"error": "gone"}):
                    raise BrokenError("the kernel does not answer any more")
                check.detail = f"{names[0]}; refused, and the kernel goes on"
            finally:
                channel.close()
                self._server.jupyter("DELETE", f"api/kernels/{kernel}")

    def _asked_about(self, kernel: str) -> list[str]:
        """What a pause asks about; the answer is no."""
        operation = self._server.api.post("pause", body={"kernels": [kernel]})["operation"]
        asked = self._server.ended(operation)
        if asked["state"] != "needs_decision":
            raise BrokenError(f"the pause was {asked['state']} without a question")
        names = [loss["path"] for loss in asked["question"]["losses"]]
        self._server.api.post("operations", operation["id"], body={"decision": "refuse"})
        while self._server.api.get("operations", operation["id"])["state"] in ("running", "needs_decision"):
            time.sleep(POLL)
        return names

    # --- pausing ------------------------------------------------------------------------------------------------

    def _pause(self, round_name: str, before: dict[str, Any]) -> Paused:
        pid = before["pid"]["value"]
        tree = self._server.remember_tree(pid)
        held = sum(_rss(process) for process in tree)
        available = psutil.virtual_memory().available
        with self._check(f"{round_name}.pause", PROMISES["pause"]) as check:
            body = {"kernels": [self.kernel_id], "on_loss": "accept"}
            ended = self._finished(self._server.api.post("pause", body=body)["operation"])
            row = self._row()
            if row["state"] != "paused" or not ended["checkpoint"]:
                raise BrokenError(f"the kernel is {row['state']}, checkpoint {ended['checkpoint']}")
            written = row["last_pause"]["bytes"]
            check.measured = {"seconds": ended["elapsed"], "bytes": written}
            check.detail = f"{size(written)} written in {ended['elapsed']:.1f} s"
        with self._check(f"{round_name}.gone", PROMISES["gone"]) as check:
            psutil.wait_procs(tree, timeout=GONE_LIMIT)
            alive = [process.pid for process in tree if is_alive(process)]
            if alive:
                raise BrokenError(f"still there: {', '.join(map(str, alive))}")
            check.detail = f"pid {', '.join(str(process.pid) for process in tree)}"
        with self._check(f"{round_name}.memory", PROMISES["memory"]) as check:
            after = sum(_rss(process) for process in tree)
            gained = psutil.virtual_memory().available - available
            check.measured = {"rss_before": held, "rss_after": after, "available_gained": gained}
            check.detail = f"resident {size(held)} before, {size(after)} after; the machine has {_signed(gained)} free"
            if after or held < self._options.size:
                raise BrokenError(check.detail)
        return Paused(pid, ended["checkpoint"], before)

    def _finished(self, operation: dict[str, Any]) -> dict[str, Any]:
        ended = self._server.ended(operation)
        if ended["state"] != "done":
            error = ended.get("error") or {}
            raise BrokenError(f"{ended['kind']} {ended['state']}: {error.get('code')}: {error.get('message')}")
        return ended

    def _row(self) -> dict[str, Any]:
        for row in self._server.api.get("state")["kernels"]:
            if row["id"] == self.kernel_id:
                found: dict[str, Any] = row
                return found
        raise BrokenError(f"kernel {self.kernel_id} is not listed any more")

    def _send_while_paused(self) -> str:
        """On a new WebSocket, as a reloaded page would."""
        with self._check("socket", PROMISES["socket"]) as check:
            began = time.monotonic()
            channel = self._connect()
            took = time.monotonic() - began
            check.measured = {"seconds": round(took, 3)}
            check.detail = f"in {took:.2f} s"
            return channel.send(cells.QUEUED, expression=cells.QUEUED_EXPRESSION)

    # --- resuming -----------------------------------------------------------------------------------------------

    def _resume(self, round_name: str, paused: Paused) -> None:
        with self._check(f"{round_name}.resume", PROMISES["resume"]) as check:
            ended = self._finished(self._server.api.post("resume", body={"kernel": self.kernel_id})["operation"])
            report = self._row()["last_resume"]
            if report is None or report["via"] != "checkpoint" or report["checkpoint"] != paused.checkpoint:
                raise BrokenError("the report does not name the checkpoint that was made")
            check.measured = {"seconds": ended["elapsed"]}
            compared = report["proof"]["compared"]
            check.detail = f"kernel {self.kernel_id[:8]} after {ended['elapsed']:.1f} s, {compared} values compared"
        with self._check(f"{round_name}.honest", PROMISES["honest"]) as check:
            lost = [loss["path"] for loss in report["losses"]]
            if report["outcome"] != "partial" or lost != [cells.EXPECTED_LOSS]:
                raise BrokenError(f"outcome {report['outcome']}, lost: {', '.join(lost) or 'nothing'}")
            if report["proof"]["mismatched"]:
                raise BrokenError(f"not as saved: {', '.join(report['proof']['mismatched'])}")
            check.detail = f"{report['outcome']}, lost: {', '.join(lost)}"
        self._options.after_resume(self._server, self.kernel_id)

    def _queued_ran(self, message_id: str, before: dict[str, Any]) -> None:
        with self._check("queued", PROMISES["queued"]) as check:
            assert self._channel is not None
            content = self._channel.reply(message_id)
            counter, total, digest = json.loads(ast.literal_eval(str(value_of(content, "value"))))
            expected = [before["counter"]["value"][0] + 1, before["instance"]["value"][2], before["token"]["value"]]
            if [counter, total, digest] != expected:
                raise BrokenError("it saw other values than those that were paused")
            check.detail = f"it read the token and counted to {counter}"

    @staticmethod
    def _expected_after_queue(proof: dict[str, Any]) -> dict[str, Any]:
        """The queued cell counted: the variable once, and the execution counter once."""
        counter, executions = proof["counter"]["value"]
        return {**proof, "counter": {"value": [counter + 1, executions + 1]}}

    def _compare(self, round_name: str, before: dict[str, Any], paused: Paused) -> None:
        with self._check(f"{round_name}.process", PROMISES["process"]) as check:
            after = self._probe()
            pid = after["pid"]["value"]
            self._server.remember_tree(pid)
            if pid == paused.pid:
                raise BrokenError(f"it is still process {pid}: nothing was ended")
            check.detail = f"process {paused.pid} before, {pid} now"
        for found in cells.compare(before, after):
            self._decide(f"{round_name}.{found.name}", cells.PROMISES[found.name], found.same, found.seen)
        said, message = cells.generator_says_what_it_was(after)
        self._decide(f"{round_name}.tombstone", PROMISES["tombstone"], said, message)

    # --- across a server restart --------------------------------------------------------------------------------

    def _kill_server(self) -> None:
        with self._check("restart.kill", PROMISES["kill"]) as check:
            if self._channel is not None:
                self._channel.close()
                self._channel = None
            pid = self._server.kill()
            left = self._server.processes()
            if left:
                raise BrokenError(f"processes are left: {', '.join(str(process.pid) for process in left)}")
            check.detail = f"pid {pid}; no process of this drill is left"

    def _start_again(self) -> None:
        with self._check("restart.start", PROMISES["start_again"]) as check:
            check.detail = f"pid {self._server.start()}"
        with self._check("restart.listed", PROMISES["listed"]) as check:
            sessions = {found["id"]: found for found in self._server.jupyter("GET", "api/sessions")}
            found = sessions.get(self._session["id"])
            if found is None or found["kernel"]["id"] != self.kernel_id or found["path"] != NOTEBOOK:
                raise BrokenError(f"session {self._session['id'][:8]} with kernel {self.kernel_id[:8]} is not listed")
            if self._row()["state"] != "paused":
                raise BrokenError(f"the kernel is {self._row()['state']}")
            self._connect()
            check.detail = f"session {found['id'][:8]}, kernel {self.kernel_id[:8]}, paused"

    # --- the end ------------------------------------------------------------------------------------------------

    def _clean_up(self) -> None:
        check = Check("clean_up", PROMISES["clean_up"])
        began = time.monotonic()
        if self._channel is not None:
            self._channel.close()
        trouble = self._server.clean_up(keep=self._options.keep)
        check.verdict = "broken" if trouble else "kept"
        kept = f"kept on request: {self._server.base}" if self._options.keep else "no process, no folder"
        check.detail = "; ".join(trouble) or kept
        now = time.monotonic()
        check.seconds, check.at = now - began, now - self._began
        self._note(check)


#: The promises that are no comparisons, in words.
PROMISES = {
    "start": "a server of its own starts",
    "notebook": "a notebook opens with a real kernel",
    "change": "the state is changed for the second round",
    "build": "state that lives only in the process is built",
    "control": "a fresh kernel does not pass for a restored one",
    "loss_named": "what cannot come back is named before",
    "refused": "without consent to lose it nothing is paused",
    "lie_named": "an object whose own saving lies is named while the process still runs",
    "pause": "the state is on disk, read back and signed",
    "gone": "the process and its children have ended",
    "memory": "their memory is free",
    "socket": "a WebSocket to the paused kernel opens",
    "resume": "the kernel comes back under the same id",
    "honest": "the report says what is back and what is not",
    "queued": "the cell sent while it was paused runs, and right",
    "process": "it is another process",
    "tombstone": "what was lost says so when it is used",
    "kill": "the server is killed (SIGKILL)",
    "start_again": "a new server starts",
    "listed": "the session is listed as paused, under its old ids",
    "clean_up": "nothing is left behind",
}


FIRST = ("start", "notebook", "build", "control", "loss_named", "refused", "lie_named")


def planned(gpu: bool = False) -> list[tuple[str, str]]:
    """Names and promises of all checks, in order; not those of exact snapshots, which are tried where they can be."""
    on_gpu = list(GPU_PROMISES.items()) if gpu else []
    plan = on_gpu[:1] + [(name, PROMISES[name]) for name in FIRST]
    pausing = ("pause", "gone", "memory")
    compared = [("process", PROMISES["process"]), *cells.PROMISES.items(), ("tombstone", PROMISES["tombstone"])]
    plan += [(f"in_place.{name}", PROMISES[name]) for name in pausing]
    plan += [("socket", PROMISES["socket"])]
    plan += [(f"in_place.{name}", PROMISES[name]) for name in ("resume", "honest")]
    plan += [("queued", PROMISES["queued"])]
    plan += [(f"in_place.{name}", promise) for name, promise in compared]
    plan += [(f"restart.{name}", PROMISES[name]) for name in ("change", *pausing)]
    plan += [("restart.kill", PROMISES["kill"]), ("restart.start", PROMISES["start_again"])]
    plan += [("restart.listed", PROMISES["listed"])]
    plan += [(f"restart.{name}", PROMISES[name]) for name in ("resume", "honest")]
    plan += [(f"restart.{name}", promise) for name, promise in compared]
    return [*plan, *on_gpu[1:], ("clean_up", PROMISES["clean_up"])]


def _rss(process: psutil.Process) -> int:
    """Resident memory in bytes; 0 for a process that is gone."""
    try:
        resident: int = process.memory_info().rss if is_alive(process) else 0
    except psutil.Error:
        return 0
    return resident


def _signed(count: int) -> str:
    return f"{size(abs(count))} {'more' if count >= 0 else 'less'}"
