# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Runs the parts, several at a time where they do not disturb each other, and sums up."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial

import parts
import setup
from console import Failed, Missing, Part, end_everything, say
from parts import Machine

Work = Callable[[Machine, Part], None]

PARTS: dict[str, Work] = {
    "lint": parts.lint,
    "ts": parts.typescript,
    "docs": parts.docs,
    "python": parts.python,
    "servers": parts.servers,
    "faults": parts.faults,
    "cluster": parts.cluster,
    "install": parts.install,
    "browser": parts.browser,
}
NEEDS_NODE_MODULES = {"lint", "ts"}
NEEDS_WHEEL = {"python", "servers", "faults", "cluster", "docs", "install", "browser"}
NEEDS_PYTHONS = {"python", "servers", "faults", "cluster", "browser"}
NEEDS_CLUSTER = {"faults", "cluster", "browser"}


class Run:
    """One run: what was asked for, what came of it."""

    def __init__(self, machine: Machine, wanted: list[str]) -> None:
        self.machine = machine
        self.wanted = wanted
        self.live = len(wanted) == 1
        self.done: list[Part] = []
        self.cluster = threading.Thread(target=self.part, args=("cluster tools", parts.find_cluster_tools))

    def part(self, name: str, work: Work) -> bool:
        """Do one part; whatever goes wrong is that part's failure."""
        with Part(name, self.machine.work / f"{name.replace(' ', '-')}.log", live=self.live) as part:
            self.done.append(part)
            try:
                work(self.machine, part)
            except Failed:
                pass
            except Missing as reason:
                part.left_out_because(str(reason))
            except Exception as error:
                part.note(f"{type(error).__name__}: {error}")
                part.failed += 1
                part.error = part.error or str(error)
        return part.ok

    def prepare(self) -> bool:
        """Everything that the wanted parts stand on. The cluster's programs take longest: `work` waits for them."""
        wanted = set(self.wanted)
        if wanted & NEEDS_CLUSTER:
            self.cluster.start()
        kernels = threading.Thread(target=self.part, args=("other Pythons", parts.find_pythons))
        if wanted & NEEDS_PYTHONS:
            kernels.start()
        ok = self.part("set-up", parts.prepare)
        if ok and wanted & NEEDS_NODE_MODULES:
            ok = self.part("node modules", parts.node_modules)
        if ok and wanted & NEEDS_WHEEL:
            ok = self.part("build", parts.build)
        if kernels.ident is not None:
            kernels.join()
        return ok

    def lane(self, *names: str) -> None:
        """Parts one after another."""
        for name in names:
            if name in self.wanted:
                self.part(name, PARTS[name])

    def work(self) -> None:
        """Four at a time, for most of them wait for a server or a kernel; the browsers alone, to have both cores."""
        work = (partial(self.lane, "python"), partial(self.lane, "servers"), self.faults, self.small_parts_and_cluster)
        lanes = [threading.Thread(target=lane) for lane in work]
        for lane in lanes:
            lane.start()
        for lane in lanes:
            lane.join()
        self.lane("browser")

    def faults(self) -> None:
        """These need CRIU, which is among the cluster's programs."""
        self.join_cluster()
        self.lane("faults")

    def small_parts_and_cluster(self) -> None:
        """The small parts first: the cluster's programs may still be under construction."""
        self.lane("lint", "ts", "docs", "install")
        self.join_cluster()
        self.lane("cluster")

    def join_cluster(self) -> None:
        """Wait for the cluster's programs, where they were wanted."""
        if self.cluster.ident is not None:
            self.cluster.join()

    def summary(self) -> bool:
        """Print what passed and what did not. The last line is read by machines."""
        passed = sum(part.passed for part in self.done)
        failed = sum(part.failed for part in self.done)
        say(f"\n{'=' * 100}\n== Summary\n{'=' * 100}")
        for part in self.done:
            counts = f"{part.passed} passed, {part.failed} failed" if part.passed or part.failed else ""
            state = "ok" if part.ok else "FAILED"
            say(f"{state:>7}  {part.name:<14} {part.seconds:6.0f} s  {counts}  {part.error}".rstrip())
            for reason in part.left_out:
                say(f"         left out: {reason}")
        say(f"\n{passed} passed, {failed} failed")
        return not failed


def _stop(*_: object) -> None:
    raise KeyboardInterrupt


def main() -> int:
    """Parse, run, clean up."""
    parser = argparse.ArgumentParser(
        prog="scripts/test",
        description="Sets up and runs everything that must hold. Without a part: all of them.",
        epilog="With CI=true, what the machine lacks fails instead of being left out.",
    )
    parser.add_argument("parts", nargs="*", metavar="part", help=" ".join(PARTS))
    parser.add_argument("--full", action="store_true", help="also the slow and heavy tests")
    parser.add_argument("--keep", action="store_true", help="keep the folder with logs and reports")
    parser.add_argument(
        "--pytest", action="append", default=[], metavar="ARG", help="handed to pytest; may be repeated"
    )
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))} (there are {', '.join(PARTS)})")
    signal.signal(signal.SIGTERM, _stop)
    begin = time.monotonic()
    machine = Machine(setup.work_folder(), options.full, options.pytest)
    run = Run(machine, options.parts or list(PARTS))
    try:
        if run.prepare():
            run.work()
        run.join_cluster()
        setup.forget_old_entries()
        say(f"\nall in all {time.monotonic() - begin:.0f} s")
        return 0 if run.summary() else 1
    except KeyboardInterrupt:
        end_everything()
        say("interrupted")
        return 130
    finally:
        if options.keep:
            say(f"logs and reports: {machine.work}")
        else:
            shutil.rmtree(machine.work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
