# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""500 Workspaces on a real API server, followed by one watch and paused in turn: how many requests does a pause take?

    python benchmarks/cluster_load.py [--workspaces 500] [--json FILE]

There are no pods here: a few lines below play the controller's part that a pause waits for (the status follows
`spec.paused`). Real are the API server, the client, the follower and the owner, as the server in a notebook uses them;
what is counted is what they sent. Ends with 1 when somebody asked more than expected, or when the follower lost sight.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import json
import resource
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from jupyter_pause.clock import SYSTEM_CLOCK
from jupyter_pause.cluster.client import PAGE, ClusterClient
from jupyter_pause.cluster.config import ClusterConfig
from jupyter_pause.cluster.resources import WORKSPACES
from jupyter_pause.cluster.watch import Follower
from jupyter_pause.owners.kubeflow import KubeflowOwner
from tests.cluster import binaries, resources
from tests.cluster.apiserver import ApiServer

#: Requests that one pause may take, from the first look to `paused`.
MOST = 8
#: Workspaces made at once; the machine has few cores.
AT_ONCE = 20
#: Seconds that one pause may take before the whole run counts as failed.
LIMIT = 60.0

Counts = collections.Counter[tuple[str, str]]


def workspace(number: int) -> dict[str, Any]:
    """A Workspace that runs."""
    template = {"volumes": {"home": f"home-{number}"}, "options": {"imageConfig": "cpu", "podConfig": "small"}}
    return {
        "apiVersion": "kubeflow.org/v1beta1",
        "kind": "Workspace",
        "metadata": {"name": f"w{number}"},
        "spec": {"kind": "jupyterlab", "podTemplate": template},
    }


def status(paused: bool) -> dict[str, Any]:
    """What the controller would say, with every field that the kind requires."""
    now = int(time.time() * 1000)
    return {
        "status": {
            "state": "Paused" if paused else "Running",
            "stateMessage": "",
            "pauseTime": now if paused else 0,
            "lastRunningTime": now,
            "pendingRestart": False,
            "activity": {"lastActivity": 0, "lastUpdate": 0},
        }
    }


class Controller:
    """Writes each Workspace's status after its specification, with a client of its own."""

    def __init__(self, client: ClusterClient, namespace: str) -> None:
        self._client, self._namespace = client, namespace
        self._follower = client.follow(WORKSPACES, namespace=namespace)
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Until cancelled."""
        self._follower.listen(self._changed.set)
        await self._follower.start()
        while True:
            for name, found in list(self._follower.objects.items()):
                wanted = bool(found["spec"].get("paused"))
                if found.get("status", {}).get("state") != ("Paused" if wanted else "Running"):
                    await self._client.merge(WORKSPACES, name, status(wanted), self._namespace, subresource="status")
            await self._changed.wait()
            self._changed.clear()


async def pause(config: ClusterConfig, namespace: str, name: str) -> tuple[Counts, float]:
    """One pause, as the server in a pod makes it. Returns what it sent and how long it took (seconds)."""
    client = ClusterClient(config, clock=SYSTEM_CLOCK)
    owner = KubeflowOwner(client, namespace=namespace, name=name, clock=SYSTEM_CLOCK)
    changed = asyncio.Event()
    owner.listen(changed.set)
    try:
        await owner.start()
        began = time.monotonic()
        await owner.release()
        async with asyncio.timeout(LIMIT):
            while owner.view().state != "paused":
                await changed.wait()
                changed.clear()
        return client.requests, time.monotonic() - began
    finally:
        await owner.stop()


async def measure(server: ApiServer, namespace: str, count: int) -> dict[str, Any]:
    """Make the Workspaces, follow them with one watch, pause one after the other."""
    config = ClusterConfig.from_kubeconfig(server.kubeconfig(server.admin_token, namespace))
    maker, played, watched = (ClusterClient(config, clock=SYSTEM_CLOCK) for _ in range(3))
    controller = asyncio.create_task(Controller(played, namespace).run())
    try:
        for first in range(0, count, AT_ONCE):
            numbers = range(first, min(first + AT_ONCE, count))
            await asyncio.gather(*(maker.create(WORKSPACES, workspace(n), namespace) for n in numbers))
        follower = watched.follow(WORKSPACES, namespace=namespace)
        await follower.start()
        await until(follower, lambda: all(_state(w) == "Running" for w in follower.objects.values()))
        before = collections.Counter(watched.requests)
        results = [await pause(config, namespace, f"w{number}") for number in range(count)]
        await until(follower, lambda: all(_state(w) == "Paused" for w in follower.objects.values()))
        return summary(count, results, before, watched.requests, len(follower.objects))
    finally:
        controller.cancel()
        for client in (maker, played, watched):
            await client.close()


def _state(found: dict[str, Any]) -> str:
    return str(found.get("status", {}).get("state"))


async def until(follower: Follower, reached: Any) -> None:
    """Wait for the follower to have seen it."""
    changed = asyncio.Event()
    leave = follower.listen(changed.set)
    async with asyncio.timeout(LIMIT):
        while not reached():
            await changed.wait()
            changed.clear()
    leave()


def summary(
    count: int, results: list[tuple[Counts, float]], before: Counts, after: Counts, seen: int
) -> dict[str, Any]:
    """The figures that are printed."""
    totals = [sum(requests.values()) for requests, _ in results]
    seconds = [taken for _, taken in results]
    kinds: Counts = sum((requests for requests, _ in results), collections.Counter())
    return {
        "workspaces": count,
        "seen_by_the_follower": seen,
        "requests_per_pause": {"median": statistics.median(totals), "most": max(totals)},
        "requests_by_kind": {f"{verb} {plural}": n / count for (verb, plural), n in sorted(kinds.items())},
        "seconds_per_pause": {"median": round(statistics.median(seconds), 3), "most": round(max(seconds), 3)},
        "follower_requests_until_filled": dict(sorted((" ".join(key), n) for key, n in before.items())),
        "follower_requests_while_all_were_paused": sum((after - before).values()),
        "pages_of_a_list": PAGE,
        "memory_of_this_process_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--workspaces", type=int, default=500, metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    options = parser.parse_args()
    server = ApiServer(binaries.api_server())
    try:
        server.start()
        resources.install(server)
        figures = asyncio.run(measure(server, server.namespace("load"), options.workspaces))
    finally:
        server.stop()
    print(json.dumps(figures, indent=2))
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    broken = {
        "a pause took too many requests": figures["requests_per_pause"]["most"] > MOST,
        "the follower asked again": figures["follower_requests_while_all_were_paused"] > 0,
        "the follower did not see all": figures["seen_by_the_follower"] != options.workspaces,
    }
    for what, happened in broken.items():
        if happened:
            print(what, file=sys.stderr)
    return int(any(broken.values()))


if __name__ == "__main__":
    raise SystemExit(main())
