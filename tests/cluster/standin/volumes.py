# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A pod's volumes as folders of this machine: claims stay, everything else is the pod's."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster.rest import Object

from . import pods
from .api import CONFIG_MAP, SERVICE_ACCOUNT, Api
from .container import Bind

#: Seconds a service-account token is good for; what the kubelet asks for.
TOKEN_SECONDS = 3607


@dataclass
class Mounts:
    """What is mounted into a container."""

    binds: list[Bind] = field(default_factory=list)
    #: Empty folders in memory: `emptyDir`. A snapshot has their content.
    memory: list[str] = field(default_factory=list)


class UnknownVolume(Exception):
    """A kind of volume or a mount path that the stand-in does not play."""


class Volumes:
    """All volumes below one folder."""

    def __init__(self, api: Api, folder: Path, ca: str) -> None:
        self._api = api
        self._claims = folder / "claims"
        self._ca = Path(ca)

    def claim(self, namespace: str, name: str) -> Path:
        """The folder that a PersistentVolumeClaim is."""
        path = self._claims / namespace / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    async def mounts(self, pod: Object, folder: Path) -> Mounts:
        """Make the pod's mounts; `folder` is the pod's own.

        Raises:
            UnknownVolume: one is not played here.
            ApiError: a ConfigMap or the service account is not there.
        """
        made = Mounts([Bind("container", folder, "/run/container")])
        await self.write_service_account(pod, folder)
        made.binds.append(Bind("service-account", folder / "serviceaccount", pods.SERVICE_ACCOUNT))
        by_name = {volume["name"]: volume for volume in pod["spec"].get("volumes", [])}
        for mount in pods.main_container(pod).get("volumeMounts", []):
            await self._add(made, pod, folder, by_name[mount["name"]], mount)
        return made

    async def write_service_account(self, pod: Object, folder: Path) -> None:
        """Token, CA and namespace in the pod's folder, as the kubelet projects them; again: a new token."""
        metadata = pod["metadata"]
        bound = {"kind": "Pod", "apiVersion": "v1", "name": metadata["name"], "uid": metadata["uid"]}
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": TOKEN_SECONDS, "boundObjectRef": bound},
        }
        account = pod["spec"].get("serviceAccountName", "default")
        path = SERVICE_ACCOUNT.path(metadata["namespace"], account, "token")
        token = (await self._api.request("POST", path, request))["status"]["token"]
        place = folder / "serviceaccount"
        place.mkdir(exist_ok=True)
        (place / "namespace").write_text(metadata["namespace"], encoding="utf-8")
        (place / "ca.crt").write_bytes(self._ca.read_bytes())
        fresh = place / ".token"
        fresh.write_text(token, encoding="utf-8")
        fresh.replace(place / "token")

    async def _add(self, made: Mounts, pod: Object, folder: Path, volume: Object, mount: Object) -> None:
        target: str = mount["mountPath"]
        if "configMap" in volume:
            await self._config_map(pod["metadata"]["namespace"], folder, volume, mount)
        elif target == "/dev/shm":
            return
        elif not target.startswith(pods.MOUNTABLE):
            raise UnknownVolume(f"mounts lie in {', '.join(pods.MOUNTABLE)} here, not in {target}")
        elif "persistentVolumeClaim" in volume:
            claim = volume["persistentVolumeClaim"]["claimName"]
            made.binds.append(Bind(f"claim-{claim}", self.claim(pod["metadata"]["namespace"], claim), target))
        elif "emptyDir" in volume:
            made.memory.append(target)
        else:
            raise UnknownVolume(json.dumps(volume))

    async def _config_map(self, namespace: str, folder: Path, volume: Object, mount: Object) -> None:
        target = Path(mount["mountPath"])
        if target.parent != Path("/etc/jupyter") or "subPath" not in mount:
            raise UnknownVolume(f"a ConfigMap can only be a file in /etc/jupyter here, not {target}")
        found = await self._api.get(CONFIG_MAP, volume["configMap"]["name"], namespace)
        place = folder / Path(pods.ETC_JUPYTER).name
        place.mkdir(exist_ok=True)
        (place / target.name).write_text(found["data"][mount["subPath"]], encoding="utf-8")
