# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Kubeflow's Workspace controller: a Workspace is a StatefulSet of one pod, and a status computed from it.

facts/cluster.md section 2; names and order as in its public source (workspace_controller.go, branch notebooks-v2).
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections.abc import Mapping

from tests.cluster.rest import Object

from . import activity, workspace_state
from .api import (
    EVENT,
    NAMESPACE,
    POD,
    ROLE_BINDING,
    SERVICE_ACCOUNT,
    STATEFUL_SET,
    WORKSPACE,
    WORKSPACE_KIND,
    Api,
    Cache,
    Key,
    Kind,
    key_of,
    milliseconds,
    owner_reference,
)
from .faults import Faults
from .reconciler import Reconciler

LABEL = "notebooks.kubeflow.org/workspace-name"
#: What the template was made from: the API server fills in defaults, so the templates themselves cannot be compared.
MADE_FROM = "standin/made-from"


def connect_path(namespace: str, workspace: str, port: str) -> str:
    """Where a port of a workspace is reached, behind the same host as Kubeflow's own pages."""
    return f"/workspace/connect/{namespace}/{workspace}/{port}/"


class Workspaces(Reconciler):
    """The controller."""

    def __init__(self, api: Api, caches: Mapping[Kind, Cache], faults: Faults) -> None:
        super().__init__()
        self._api = api
        self._caches = caches
        self._faults = faults
        self._granted: set[str] = set()
        caches[WORKSPACE].listen(lambda key, _: self.enqueue(key))
        caches[WORKSPACE_KIND].listen(lambda *_: self.look_again())
        caches[POD].listen(lambda key, pod: self._of(key, pod))
        caches[STATEFUL_SET].listen(lambda key, found: self._of(key, found))
        caches[EVENT].listen(lambda _, event: self._of_event(event))

    def look_again(self) -> None:
        """A fault was switched, or a kind changed."""
        for key in self._caches[WORKSPACE].objects:
            self.enqueue(key)

    def _of(self, key: Key, dependent: Object | None) -> None:
        if dependent is None:
            # Gone, and with it its label: a pod or set of any of them.
            for workspace in self._caches[WORKSPACE].objects:
                if workspace[0] == key[0]:
                    self.enqueue(workspace)
        elif LABEL in dependent["metadata"].get("labels", {}):
            self.enqueue((key[0], dependent["metadata"]["labels"][LABEL]))

    def _of_event(self, event: Object | None) -> None:
        if event is not None:
            about = event["involvedObject"]
            pod = self._caches[POD].get((about.get("namespace", ""), about["name"]))
            if pod is not None:
                self._of(key_of(pod), pod)

    async def reconcile(self, key: Key) -> float | None:
        workspace = self._caches[WORKSPACE].get(key)
        if workspace is None or "deletionTimestamp" in workspace["metadata"]:
            return None
        kind = self._caches[WORKSPACE_KIND].get(("", workspace["spec"]["kind"]))
        if kind is None:
            name = workspace["spec"]["kind"]
            await self._write(
                workspace, {"state": "Error", "stateMessage": f"Workspace references unknown WorkspaceKind: {name}"}
            )
            return None
        account = await self._service_account(workspace, kind)
        found = await self._stateful_set(workspace, kind, account)
        pod = self._caches[POD].get((key[0], f"{found['metadata']['name']}-0"))
        status = self._status(workspace, pod, account)
        verdict = await self._activity(workspace, kind, pod, status)
        if verdict is not None:
            status["activity"] = verdict.activity
        await self._write(workspace, status)
        if verdict is not None and verdict.pause:
            await self._api.patch(WORKSPACE, key, {"spec": {"paused": True}})
        return verdict.again if verdict is not None else None

    async def _service_account(self, workspace: Object, kind: Object) -> str:
        """`ws-<workspace>`, with the cluster roles that the kind gives it in this namespace."""
        name, namespace = f"ws-{workspace['metadata']['name']}", workspace["metadata"]["namespace"]
        if workspace["metadata"]["uid"] in self._granted:
            return name
        metadata = {"namespace": namespace, "ownerReferences": [owner_reference(workspace)]}
        await self._api.apply(SERVICE_ACCOUNT, {"metadata": {**metadata, "name": name}})
        for role in kind["spec"]["podTemplate"].get("serviceAccount", {}).get("clusterRoles", []):
            suffix = hashlib.sha256(role["name"].encode()).hexdigest()[:8]
            binding = {
                "metadata": {**metadata, "name": f"{name}-{suffix}"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role["name"]},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
            }
            await self._api.apply(ROLE_BINDING, binding)
        self._granted.add(workspace["metadata"]["uid"])
        return name

    async def _stateful_set(self, workspace: Object, kind: Object, account: str) -> Object:
        owned = self._caches[STATEFUL_SET].owned_by(workspace)
        wanted = stateful_set(workspace, kind, account)
        if not owned:
            # The cache may be behind: the API is asked before a second one is made.
            listed = await self._api.list(STATEFUL_SET, workspace["metadata"]["namespace"])
            uid = workspace["metadata"]["uid"]
            owned = [s for s in listed if any(o["uid"] == uid for o in s["metadata"].get("ownerReferences", []))]
        if not owned:
            return await self._api.create(STATEFUL_SET, wanted)
        found = owned[0]
        made_from = wanted["metadata"]["annotations"][MADE_FROM]
        same = found["metadata"].get("annotations", {}).get(MADE_FROM) == made_from
        if same and found["spec"]["replicas"] == wanted["spec"]["replicas"]:
            return found
        changed = copy.deepcopy(found)
        changed["metadata"].setdefault("annotations", {})[MADE_FROM] = made_from
        changed["spec"]["replicas"] = wanted["spec"]["replicas"]
        if not same:
            changed["spec"]["template"] = wanted["spec"]["template"]
        return await self._api.replace(STATEFUL_SET, changed)

    def _status(self, workspace: Object, pod: Object | None, account: str) -> Object:
        before = workspace.get("status", {})
        paused = workspace["spec"].get("paused", False)
        events = [] if pod is None else self._events_of(pod)
        state, message = workspace_state.state(paused, pod, events)
        status: Object = {
            "activity": before.get("activity", {"lastActivity": 0, "lastUpdate": 0}),
            "pauseTime": (before.get("pauseTime") or milliseconds()) if paused else 0,
            "lastRunningTime": before.get("lastRunningTime", 0),
            "pendingRestart": False,
            "podTemplatePod": _pod_status(pod, account),
            "state": state,
            "stateMessage": message,
        }
        if state == "Running" and (before.get("state") != "Running" or not status["lastRunningTime"]):
            # A new run begins: what was seen of the last one counts no more.
            status["lastRunningTime"] = milliseconds()
            status["activity"] = {"lastActivity": 0, "lastUpdate": 0}
        return status

    async def _activity(
        self, workspace: Object, kind: Object, pod: Object | None, status: Object
    ) -> activity.Verdict | None:
        if status["state"] != "Running" or pod is None:
            return None
        metadata = workspace["metadata"]
        port = image_config(workspace, kind)["ports"][0]
        path = connect_path(metadata["namespace"], metadata["name"], port["id"])
        address = f"http://{pod['status']['podIP']}:{port['port']}{path}"
        namespace = await self._api.get(NAMESPACE, metadata["namespace"])
        labels = {
            "namespace": namespace["metadata"].get("labels", {}),
            "podConfig": _pod_config_labels(workspace, kind),
        }
        return await activity.look({**workspace, "status": status}, kind, pod, address, labels)

    async def _write(self, workspace: Object, status: Object) -> None:
        if self._faults.status_lag:
            return
        before = workspace.get("status", {})
        if any(before.get(name) != value for name, value in status.items()):
            defaults = {
                "activity": {"lastActivity": 0, "lastUpdate": 0},
                "pauseTime": 0,
                "lastRunningTime": 0,
                "pendingRestart": False,
            }
            await self._api.replace(WORKSPACE, {**workspace, "status": {**defaults, **before, **status}}, "status")

    def _events_of(self, pod: Object) -> list[Object]:
        uid = pod["metadata"]["uid"]
        return [event for event in self._caches[EVENT].objects.values() if event["involvedObject"].get("uid") == uid]


def image_config(workspace: Object, kind: Object) -> Object:
    """The image and its ports that the Workspace has chosen."""
    chosen = workspace["spec"]["podTemplate"]["options"]["imageConfig"]
    values = kind["spec"]["podTemplate"]["options"]["imageConfig"]["values"]
    spec: Object = next(value["spec"] for value in values if value["id"] == chosen)
    return spec


def stateful_set(workspace: Object, kind: Object, account: str) -> Object:
    """What the controller wants the StatefulSet to be."""
    metadata = workspace["metadata"]
    template = _template(workspace, kind, account)
    made_from = hashlib.sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()
    return {
        "metadata": {
            "generateName": f"ws-{metadata['name']}-",
            "namespace": metadata["namespace"],
            "labels": {LABEL: metadata["name"]},
            "annotations": {MADE_FROM: made_from},
            "ownerReferences": [owner_reference(workspace)],
        },
        "spec": {
            "replicas": 0 if workspace["spec"].get("paused", False) else 1,
            "selector": {"matchLabels": _selector(workspace)},
            "template": template,
        },
    }


def _selector(workspace: Object) -> dict[str, str]:
    name = workspace["metadata"]["name"]
    return {LABEL: name, "statefulset": name}


def _template(workspace: Object, kind: Object, account: str) -> Object:
    of_kind, of_workspace = kind["spec"]["podTemplate"], workspace["spec"]["podTemplate"]
    labels = {
        **of_kind.get("podMetadata", {}).get("labels", {}),
        **of_workspace.get("podMetadata", {}).get("labels", {}),
    }
    annotations = {
        **of_kind.get("podMetadata", {}).get("annotations", {}),
        **of_workspace.get("podMetadata", {}).get("annotations", {}),
    }
    volumes, mounts = _volumes(workspace, kind)
    image = image_config(workspace, kind)
    container = {
        "name": "main",
        "image": image["image"],
        "imagePullPolicy": image.get("imagePullPolicy", "IfNotPresent"),
        "ports": [
            {"name": f"http-{port['port']}", "containerPort": port["port"], "protocol": "TCP"}
            for port in image["ports"]
        ],
        "env": [_rendered(entry, workspace) for entry in of_kind.get("extraEnv", [])],
        "volumeMounts": mounts,
        "resources": _pod_config(workspace, kind)["spec"].get("resources", {}),
        **{name: probe for name, probe in of_kind.get("probes", {}).items() if name.endswith("Probe")},
    }
    return {
        "metadata": {"labels": {**labels, **_selector(workspace)}, "annotations": annotations},
        "spec": {
            "serviceAccountName": account,
            "nodeSelector": _pod_config(workspace, kind)["spec"].get("nodeSelector", {}),
            "containers": [container],
            "volumes": volumes,
        },
    }


def _volumes(workspace: Object, kind: Object) -> tuple[list[Object], list[Object]]:
    of_kind, wanted = kind["spec"]["podTemplate"], workspace["spec"]["podTemplate"]["volumes"]
    volumes, mounts = [], []
    if "home" in wanted:
        volumes.append({"name": "home-volume", "persistentVolumeClaim": {"claimName": wanted["home"]}})
        mounts.append({"name": "home-volume", "mountPath": of_kind["volumeMounts"]["home"]})
    for number, data in enumerate(wanted.get("data", [])):
        name, read_only = f"data-volume-{number}", data.get("readOnly", False)
        claim = {"claimName": data["pvcName"], "readOnly": read_only}
        volumes.append({"name": name, "persistentVolumeClaim": claim})
        mounts.append({"name": name, "mountPath": data["mountPath"], "readOnly": read_only})
    volumes += of_kind.get("extraVolumes", [])
    mounts += of_kind.get("extraVolumeMounts", [])
    return volumes, mounts


def _rendered(entry: Object, workspace: Object) -> Object:
    """`{{ httpPathPrefix "ID" }}`, the one template function that the kinds of the examples use."""
    metadata = workspace["metadata"]
    if "value" not in entry:
        return entry
    value = re.sub(
        r'\{\{\s*httpPathPrefix\s+"([^"]+)"\s*\}\}',
        lambda match: connect_path(metadata["namespace"], metadata["name"], match[1]),
        entry["value"],
    )
    return {**entry, "value": value}


def _pod_config(workspace: Object, kind: Object) -> Object:
    chosen = workspace["spec"]["podTemplate"]["options"]["podConfig"]
    values = kind["spec"]["podTemplate"]["options"]["podConfig"]["values"]
    found: Object = next(value for value in values if value["id"] == chosen)
    return found


def _pod_config_labels(workspace: Object, kind: Object) -> dict[str, str]:
    labels = _pod_config(workspace, kind)["spawner"].get("labels", [])
    return {label["key"]: label["value"] for label in labels}


def _pod_status(pod: Object | None, account: str) -> Object:
    if pod is None:
        return {"serviceAccountName": account}
    return {
        "name": pod["metadata"]["name"],
        "nodeName": pod["spec"].get("nodeName", ""),
        "serviceAccountName": account,
        "containers": [{"name": container["name"]} for container in pod["spec"]["containers"]],
    }
