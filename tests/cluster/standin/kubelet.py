# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The kubelet of the one node: containers of bound pods, and the pods' status."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import httpx

from tests.cluster.rest import ApiError, Object

from . import container, pods
from .addresses import Addresses
from .api import AGAIN, POD, STRATEGIC, Api, Cache, Key, condition, is_true, key_of, make_condition, now
from .container import Container, ContainerSpec, CriuError, OutsideConnection
from .events import Events
from .faults import Faults
from .signals import Signal
from .volumes import Volumes

log = logging.getLogger("standin")

NODE = "node-1"
NODE_IP = "192.0.2.1"
#: Seconds between two restarts of a container, doubled each time; what the kubelet does.
BACK_OFF = 10.0
PROBE_INTERVAL = 0.1


class SnapshotStore(Protocol):
    """Where a pod's snapshot is, if it has one that fits."""

    def images_for(self, pod: Object) -> Path | None:
        """The folder of CRIU's images and the container's log, or None: start cold."""


@dataclass
class Node:
    """What all pods of the node share."""

    api: Api
    pods: Cache
    faults: Faults
    events: Events
    volumes: Volumes
    folder: Path
    criu: Path | None
    #: Address of the API server as pods see it.
    api_address: tuple[str, int]
    #: Entry points of images by their name.
    images: dict[str, list[str]] = field(default_factory=dict)


class Kubelet:
    """Runs a worker for every pod that is bound to the node."""

    def __init__(self, node: Node, snapshots: SnapshotStore) -> None:
        self._node = node
        self._snapshots = snapshots
        self._addresses = Addresses()
        self.workers: dict[str, PodWorker] = {}
        node.pods.listen(self._changed)

    def look_again(self) -> None:
        """A fault was switched."""
        for worker in self.workers.values():
            worker.changed.set()

    def worker(self, key: Key) -> PodWorker | None:
        """The worker of the pod of that name."""
        return next((worker for worker in self.workers.values() if key_of(worker.pod) == key), None)

    async def stop(self) -> None:
        """End all containers, at once."""
        for worker in list(self.workers.values()):
            await worker.abandon()
        self._addresses.close()

    def _changed(self, key: Key, pod: Object | None) -> None:
        if pod is None:
            for worker in self.workers.values():
                if key_of(worker.pod) == key and not worker.deleting:
                    # Deleted by force: the kubelet ends what it finds running.
                    asyncio.get_running_loop().create_task(worker.abandon())
            return
        uid = pod["metadata"]["uid"]
        if uid in self.workers:
            self.workers[uid].update(pod)
        elif pod["spec"].get("nodeName") == NODE:
            ip = self._addresses.of(key)
            worker = PodWorker(self._node, self._snapshots, pod, ip, lambda: self.workers.pop(uid, None))
            self.workers[uid] = worker
            worker.begin()


class PodWorker:
    """One pod from its binding to its end."""

    def __init__(self, node: Node, snapshots: SnapshotStore, pod: Object, ip: str, ended: Callable[[], object]) -> None:
        self.pod = pod
        self.ip = ip
        self.changed = Signal()
        self.container: Container | None = None
        self.deleting = False
        #: Restored from this snapshot; None: started cold.
        self.restored_from: str | None = None
        self.folder = node.folder / "pods" / pod["metadata"]["uid"]
        self._node = node
        self._snapshots = snapshots
        self._ended = ended
        self._task: asyncio.Task[None] | None = None
        self._published: Object | None = None
        self._publishing = asyncio.Lock()
        self._state: Object = {"waiting": {"reason": "ContainerCreating"}}
        self._last_state: Object = {}
        self._ready = False
        self._restarts = 0
        self._restored: Object | None = None
        self._started = now()

    def begin(self) -> None:
        """Start working."""
        self._task = asyncio.get_running_loop().create_task(self._work())

    def update(self, pod: Object) -> None:
        """The pod's object changed."""
        self.pod = pod
        self.changed.set()

    async def abandon(self) -> None:
        """Kill the container and forget the pod, whatever the API says."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self.container is not None:
            await self.container.kill()
        self._ended()

    async def _work(self) -> None:
        living = asyncio.get_running_loop().create_task(self._live())
        try:
            await self._until_deleted()
            self.deleting = True
        finally:
            living.cancel()
            await asyncio.wait([living])
        await self._terminate()

    async def _live(self) -> None:
        """Start, watch over and restart the container, until cancelled."""
        try:
            self.folder.mkdir(parents=True)
            await self._publish()
            await self._prepare()
            self.container = await self._first_start()
            while True:
                await self._run_until_end(self.container)
                await self._back_off()
                self.container = await self._cold_start()
        except asyncio.CancelledError:
            raise
        except Exception as error:
            log.exception("pod %s", key_of(self.pod))
            self._state = {"waiting": {"reason": "CreateContainerError", "message": str(error)[-1000:]}}
            await self._publish()

    async def _prepare(self) -> None:
        faults, pod = self._node.faults, self.pod
        if faults.volume_attached_elsewhere:
            volume = next(v["name"] for v in pod["spec"]["volumes"] if "persistentVolumeClaim" in v)
            text = f'Multi-Attach error for volume "{volume}" Volume is already used by pod(s) on another node'
            await self._node.events.warning(pod, "FailedAttachVolume", text, "attachdetach-controller")
            await self.changed.until(lambda: not faults.volume_attached_elsewhere)
        if faults.image_pull_fails:
            image = pods.main_container(pod)["image"]
            await self._node.events.warning(pod, "Failed", f'Failed to pull image "{image}": not found', "kubelet")
            for reason in ("ErrImagePull", "ImagePullBackOff"):
                self._state = {"waiting": {"reason": reason, "message": f'Back-off pulling image "{image}"'}}
                await self._publish()
            await self.changed.until(lambda: not faults.image_pull_fails)

    async def _spec(self) -> ContainerSpec:
        pod, node = self.pod, self._node
        mounts = await node.volumes.mounts(pod, self.folder)
        env = pods.environment(pod, self.ip, node.api_address)
        argv = pods.command(pod, node.images.get(pods.main_container(pod)["image"], []), env)
        if node.faults.crash_loop:
            argv = ["/bin/false"]
        main = pods.main_container(pod)
        return ContainerSpec(
            folder=self.folder,
            hostname=pod["metadata"]["name"],
            argv=argv,
            env=env,
            working_dir=main.get("workingDir", "/home/jovyan"),
            binds=mounts.binds,
            memory=mounts.memory,
            image_paths=pods.image_paths(),
        )

    async def _first_start(self) -> Container:
        """From the snapshot that the pod names, where there is one that fits; else cold, and nobody is told."""
        faults = self._node.faults
        name = self.pod["metadata"].get("annotations", {}).get("podsnapshot.gke.io/ps-name")
        images = self._snapshots.images_for(self.pod)
        if name and faults.restore_hangs:
            self._state = {"running": {"startedAt": now()}}
            await self._publish()
            await self.changed.until(lambda: not faults.restore_hangs)
        if name and faults.restore_wrong_snapshot:
            self._restored = make_condition(
                "PodRestored", True, "Restored", _restored_from(faults.restore_wrong_snapshot)
            )
        elif name and faults.restore_failed:
            self._restored = make_condition(
                "PodRestored", False, faults.restore_failed, "the snapshot was not restored"
            )
        elif name and images is not None and not faults.restore_cold and self._node.criu is not None:
            with contextlib.suppress(CriuError):
                return await self._restore(name, images)
        return await self._cold_start()

    async def _restore(self, name: str, images: Path) -> Container:
        spec = await self._spec()
        # An open file must have the size and mode it had.
        shutil.copy(images / "container.log", self.folder / "log")
        assert self._node.criu is not None
        try:
            restored = await container.restore(spec, self._node.criu, images)
        except CriuError as error:
            log.warning("restore of %s: %s", name, error)
            raise
        self.restored_from = name
        self._restored = make_condition("PodRestored", True, "Restored", _restored_from(name))
        return restored

    async def _cold_start(self) -> Container:
        return await container.start(await self._spec())

    async def _run_until_end(self, running: Container) -> None:
        self._state = {"running": {"startedAt": now()}}
        probing = asyncio.get_running_loop().create_task(self._probe())
        await self._publish()
        try:
            code = await asyncio.shield(running.ended)
        finally:
            probing.cancel()
            await asyncio.wait([probing])
        if running.dumped:
            # Frozen into a snapshot. What the pod's status says in that time is documented nowhere: it stays.
            await asyncio.Event().wait()
        self._ready = False
        reason = "OOMKilled" if self._node.faults.snapshot_out_of_memory and code == 137 else "Error"
        self._last_state = {"terminated": {"exitCode": code, "reason": reason if code else "Completed"}}
        self._state = self._last_state
        await self._publish()

    async def _back_off(self) -> None:
        self._restarts += 1
        if self._restarts == 1 and not self._node.faults.crash_loop:
            return
        self._state = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off restarting failed container"}}
        await self._publish()
        await self._node.events.warning(self.pod, "BackOff", "Back-off restarting failed container main", "kubelet")
        await asyncio.sleep(min(BACK_OFF * 2 ** (self._restarts - 1), 300.0))

    async def _probe(self) -> None:
        """Ready once the port of the readiness probe answers. Not asked again: a probe is an outside connection."""
        probe = pods.main_container(self.pod).get("readinessProbe", {}).get("tcpSocket")
        while probe is not None and not await _answers(self.ip, int(probe["port"])):  # noqa: ASYNC110
            await asyncio.sleep(PROBE_INTERVAL)
        self._ready = True
        await self._publish()

    async def snapshot(self, images: Path) -> None:
        """Freeze the container into `images`.

        Raises:
            OutsideConnection: it had one, and was killed for it.
            CriuError: it cannot be dumped; it goes on.
        """
        running = self.container
        if running is None or not running.running or self._node.criu is None:
            raise CriuError("no container runs")
        if self._node.faults.snapshot_out_of_memory:
            await running.kill()
            raise CriuError("the container was killed for lack of memory")
        try:
            closes = self._node.faults.outside_connections_closed
            await running.dump(self._node.criu, images, close_connections=closes)
        except OutsideConnection:
            await running.kill()
            raise
        shutil.copy(self.folder / "log", images / "container.log")

    async def _terminate(self) -> None:
        code = 0
        if self.container is not None:
            code = await self.container.stop(pods.grace_seconds(self.pod))
        self._ready = False
        self._state = {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed"}}
        await self._publish()
        uid = self.pod["metadata"]["uid"]
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
        while True:
            try:
                await self._node.api.delete(POD, key_of(self.pod), options)
                break
            except (ApiError, httpx.HTTPError) as error:
                log.warning("deleting %s: %r", key_of(self.pod), error)
                if isinstance(error, ApiError) and error.status == 409:
                    break
                await asyncio.sleep(0.5)
        shutil.rmtree(self.folder, ignore_errors=True)
        self._ended()

    async def _until_deleted(self) -> None:
        """Keep the status true to what others wrote into it, until the pod is to go."""
        while "deletionTimestamp" not in self.pod["metadata"]:
            seen = self.changed.changes
            await self._publish()
            await self.changed.next(seen)

    async def _publish(self) -> None:
        """Write the status where it differs from what was written last; again until it is written."""
        async with self._publishing:
            while (status := self._status()) != self._published:
                patch = {**status, "conditions": [self._timed(one) for one in status["conditions"]]}
                try:
                    await self._node.api.patch(POD, key_of(self.pod), {"status": patch}, "status", STRATEGIC)
                except (ApiError, httpx.HTTPError) as error:
                    if isinstance(error, ApiError) and error.status in (404, 409):
                        return
                    log.warning("status of %s: %r", key_of(self.pod), error)
                    await asyncio.sleep(AGAIN)
                else:
                    self._published = status

    def _timed(self, changed: Object) -> Object:
        """A condition with the time at which it became what it is."""
        before = condition(self.pod, changed["type"])
        same = before is not None and before["status"] == changed["status"]
        since = (before or {}).get("lastTransitionTime") if same else None
        return {**changed, "lastTransitionTime": since or now()}

    def _status(self) -> Object:
        main = pods.main_container(self.pod)
        running = "running" in self._state
        gates = [gate["conditionType"] for gate in self.pod["spec"].get("readinessGates", [])]
        missing = [gate for gate in gates if not is_true(self.pod, gate)]
        conditions = [
            _steady("Initialized", True),
            _steady("ContainersReady", self._ready),
            _steady("Ready", self._ready and not missing, "ReadinessGatesNotReady" if self._ready and missing else ""),
        ]
        if self._restored is not None:
            conditions.append(self._restored)
        has_run = running or self._restarts > 0 or "terminated" in self._state
        return {
            "phase": "Running" if has_run else "Pending",
            "hostIP": NODE_IP,
            "podIP": self.ip,
            "podIPs": [{"ip": self.ip}],
            "startTime": self._started,
            "conditions": conditions,
            "containerStatuses": [
                {
                    "name": main["name"],
                    "image": main["image"],
                    "imageID": "",
                    "ready": self._ready,
                    "started": running,
                    "restartCount": self._restarts,
                    "state": self._state,
                    "lastState": self._last_state if self._restarts else {},
                }
            ],
        }


def _steady(kind: str, status: bool, reason: str = "") -> Object:
    # Without a time: two statuses are compared. None takes an old reason away.
    reason = reason or ("" if status else "ContainersNotReady")
    return {"type": kind, "status": "True" if status else "False", "reason": reason or None, "message": None}


def _restored_from(name: str) -> str:
    return f"pod was restored from snapshot {name}"


async def _answers(host: str, port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(host, port)
    except OSError:
        return False
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return True
