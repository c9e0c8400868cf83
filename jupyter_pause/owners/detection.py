# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Which owner this server is under, in two steps, with one reason for each doubt.

`detect` reads the environment and the service account's files, nothing else; it runs while the server starts.
`identify` asks the cluster for our own pod and who owns it. Imports nothing heavy.

Facts: Kubernetes sets `KUBERNETES_SERVICE_HOST`/`_PORT` and mounts a token; shells and `sudo` often lose the variables
(cases.md S45), so each half alone is a case of its own. Kubeflow's notebooks get `NB_PREFIX`, and Workspaces get
`JUPYTERHUB_SERVICE_PREFIX` too, so only the Hub's API address tells JupyterHub. Labels and variables can be written by
anybody; an owner reference of the controller cannot be mistaken.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jupyter_pause.cluster.config import HOST_VARIABLE, PORT_VARIABLE, SERVICE_ACCOUNT_FOLDER, own_namespace
from jupyter_pause.cluster.errors import ClusterError
from jupyter_pause.cluster.resources import NOTEBOOKS_V1, PODS, SANDBOXES, STATEFULSETS, WORKSPACES
from jupyter_pause.states import OwnerKind, Reason

if TYPE_CHECKING:
    from jupyter_pause.cluster.client import ClusterClient
    from jupyter_pause.cluster.resources import Resource

Object = Mapping[str, Any]
Wanted = OwnerKind | Literal["auto"]

WORKSPACE_LABEL = "notebooks.kubeflow.org/workspace-name"
NOTEBOOK_LABEL = "notebook-name"
#: The readiness gate that the snapshot add-on puts into pods, and the annotation that switches it on for a Workspace.
ACTIVE_GATE = "podsnapshot.gke.kubeflow.org/active"
ENABLED = "podsnapshot.gke.kubeflow.org/enabled"
GVISOR = "gvisor"
TPU = "google.com/tpu"

SENTENCES = {
    "owner_unknown": (
        "This server runs in a cluster and its owner is not known, so kernels are paused one by one, not the whole pod."
    ),
    "cluster_address_missing": (
        "A service account token is there but no API server address, so this counts as a single machine."
    ),
    "cluster_token_missing": (
        "An API server address is there but no service account token, so this counts as a single machine."
    ),
    "pod_unreadable": "The cluster does not let this pod be read ({code}), so its owner is taken from the environment.",
    "pod_not_found": "The cluster has no pod named {pod} here, so the owner is taken from the environment.",
    "owner_unreadable": "Who owns {name} could not be read ({code}), so the pod's labels are believed.",
    "owner_unconfirmed": "That {kind} owns this pod is said by its {by} only; no owner reference confirms it.",
    "owner_contradicted": "The {by} of this pod names {kind}, but its owner references do not: it is not believed.",
    "owner_missing": "The cluster has no {kind} named {name}, although the {by} of this pod says so.",
    "owner_unsupported": "A {owner} controls this pod, and that cannot be paused as a whole.",
    "owner_none": "Nothing controls this pod, so nobody would bring it back after a pause.",
    "owner_not_found": "The setting says that {wanted} owns this pod, but nothing here confirms it.",
    "snapshot_unknown": "Whether a pause makes a snapshot is not known, since the pod could not be read.",
    "snapshot_addon_absent": "The pod was not prepared by the snapshot add-on, so a pause keeps no memory.",
    "snapshot_addon_late": (
        "Stateful pause is on for this Workspace, but its pod was not prepared for it; after its next start it is."
    ),
    "snapshot_no_gvisor": "The pod does not run in gVisor, so no snapshot of it can be made.",
    "snapshot_tpu": "Pods with a TPU are never snapshotted, so a pause keeps no memory.",
}


@dataclass(frozen=True)
class HubServer:
    """A server of JupyterHub, as its environment says; the token stays there. `server`: "" for the default one."""

    api_url: str
    user: str
    server: str = ""
    prefix: str = "/"


@dataclass(frozen=True)
class Surroundings:
    """What can be told without asking anybody. `workspace` and `notebook`: (namespace, name) by `NB_PREFIX`."""

    in_cluster: bool
    namespace: str | None = None
    pod: str | None = None
    workspace: tuple[str, str] | None = None
    notebook: tuple[str, str] | None = None
    hub: HubServer | None = None
    reason: Reason | None = None


@dataclass(frozen=True)
class Claim:
    """Who could own this pod, and what says so."""

    kind: OwnerKind
    namespace: str | None
    name: str
    by: Literal["owner reference", "label", "environment"]


@dataclass(frozen=True)
class Found:
    """Who owns this pod. `kind` None: nobody who can pause it as a whole.

    `stateful`: a pause makes a snapshot; None: not known. `try_again`: the API server could not be asked.
    """

    kind: OwnerKind | None
    namespace: str | None = None
    name: str = ""
    pod: str | None = None
    pod_uid: str | None = None
    stateful: bool | None = None
    reasons: list[Reason] = field(default_factory=list)
    try_again: bool = False


def reason(code: str, /, **params: Any) -> Reason:
    """A reason of this module with its sentence."""
    return Reason(code=code, message=SENTENCES[code].format_map(params), params=params)


# --- step one: no questions -----------------------------------------------------------------------------------------


def detect(environ: Mapping[str, str] = os.environ, folder: Path = SERVICE_ACCOUNT_FOLDER) -> Surroundings:
    """What environment and service account say. Never raises.

    `reason` says why the mode is `local` although something of a cluster is here; None on a plain machine.
    """
    address = bool(environ.get(HOST_VARIABLE) and environ.get(PORT_VARIABLE))
    try:
        token = (folder / "token").stat().st_size > 0
    except OSError:
        token = False
    prefix = _prefix(environ.get("NB_PREFIX", ""))
    hub = _hub(environ)
    if not (address and token):
        code = "cluster_address_missing" if token else "cluster_token_missing" if address else None
        return Surroundings(in_cluster=False, hub=hub, reason=reason(code) if code else None)
    return Surroundings(
        in_cluster=True,
        namespace=own_namespace(folder) or (prefix[1] if prefix else None),
        pod=environ.get("POD_NAME") or environ.get("HOSTNAME") or socket.gethostname() or None,
        workspace=prefix[1:] if prefix and prefix[0] == "workspace" else None,
        notebook=prefix[1:] if prefix and prefix[0] == "notebook" else None,
        hub=hub,
        reason=reason("owner_unknown"),
    )


def _prefix(path: str) -> tuple[str, str, str] | None:
    """(kind, namespace, name) of `/workspace/connect/NS/NAME/PORT` (Workspaces) or `/notebook/NS/NAME` (v1)."""
    parts = [part for part in path.split("/") if part]
    if len(parts) >= 4 and parts[:2] == ["workspace", "connect"]:
        return "workspace", parts[2], parts[3]
    if len(parts) == 3 and parts[0] == "notebook":
        return "notebook", parts[1], parts[2]
    return None


def _hub(environ: Mapping[str, str]) -> HubServer | None:
    url, user = environ.get("JUPYTERHUB_API_URL", ""), environ.get("JUPYTERHUB_USER", "")
    if not (url and user and environ.get("JUPYTERHUB_API_TOKEN")):
        return None
    prefix = environ.get("JUPYTERHUB_SERVICE_PREFIX") or "/"
    return HubServer(url, user, environ.get("JUPYTERHUB_SERVER_NAME", ""), prefix)


# --- rules: objects in, claims out ----------------------------------------------------------------------------------


def controller_of(thing: Object | None) -> Object | None:
    """The owner reference of an object's controller."""
    owners = ((thing or {}).get("metadata") or {}).get("ownerReferences") or []
    return next((one for one in owners if one.get("controller")), None)


def is_kind(owner: Object | None, group: str, kind: str) -> bool:
    """Whether an owner reference is of this kind, in any version."""
    return owner is not None and owner["kind"] == kind and owner["apiVersion"].partition("/")[0] == group


def claims_of(
    surroundings: Surroundings, pod: Object | None, stateful_set: Object | None
) -> tuple[list[Claim], list[Reason]]:
    """Who may own this pod, the best first, and what is not believed.

    Args:
        pod: our pod, None where it could not be read.
        stateful_set: its controller, None where it is none, or could not be read.
    """
    proven = list(_proven(pod, stateful_set))
    controller = controller_of(pod)
    known = pod is not None and (stateful_set is not None or not is_kind(controller, "apps", "StatefulSet"))
    said: list[Claim] = []
    reasons: list[Reason] = []
    for claim in _said(surroundings, pod):
        if any(claim.kind == one.kind for one in proven):
            continue
        if known and claim.kind in ("kubeflow", "notebook_v1"):
            reasons.append(reason("owner_contradicted", kind=claim.kind, by=claim.by))
        elif claim.kind not in [one.kind for one in said]:
            said.append(claim)
    order = ("kubeflow", "notebook_v1", "sandbox", "jupyterhub", "statefulset")
    return sorted([*proven, *said], key=lambda claim: order.index(claim.kind)), reasons


def _proven(pod: Object | None, stateful_set: Object | None) -> Iterable[Claim]:
    """By owner references of controllers."""
    if pod is None:
        return
    namespace = pod["metadata"]["namespace"]
    above = controller_of(stateful_set)
    if above is not None and is_kind(above, WORKSPACES.group, WORKSPACES.kind):
        yield Claim("kubeflow", namespace, above["name"], "owner reference")
    elif above is not None and is_kind(above, NOTEBOOKS_V1.group, NOTEBOOKS_V1.kind):
        yield Claim("notebook_v1", namespace, above["name"], "owner reference")
    controller = controller_of(pod)
    if controller is None:
        return
    if is_kind(controller, SANDBOXES.group, SANDBOXES.kind):
        yield Claim("sandbox", namespace, controller["name"], "owner reference")
    elif is_kind(controller, STATEFULSETS.group, STATEFULSETS.kind) and above is None:
        yield Claim("statefulset", namespace, controller["name"], "owner reference")


def _said(surroundings: Surroundings, pod: Object | None) -> Iterable[Claim]:
    """By labels, then by the environment."""
    if pod is not None:
        labels, namespace = pod["metadata"].get("labels") or {}, pod["metadata"]["namespace"]
        if labels.get(WORKSPACE_LABEL):
            yield Claim("kubeflow", namespace, labels[WORKSPACE_LABEL], "label")
        if labels.get(NOTEBOOK_LABEL):
            yield Claim("notebook_v1", namespace, labels[NOTEBOOK_LABEL], "label")
    if surroundings.workspace is not None:
        yield Claim("kubeflow", *surroundings.workspace, "environment")
    if surroundings.notebook is not None:
        yield Claim("notebook_v1", *surroundings.notebook, "environment")
    if surroundings.hub is not None:
        hub = surroundings.hub
        name = f"{hub.user}/{hub.server}" if hub.server else hub.user
        yield Claim("jupyterhub", surroundings.namespace, name, "environment")


def stateful_of(kind: OwnerKind, pod: Object | None, owner: Object | None) -> tuple[bool | None, list[Reason]]:
    """Whether a pause by this owner makes a snapshot, and why not. `owner`: the Workspace where it could be read."""
    if kind not in ("kubeflow", "sandbox"):
        return False, []
    if pod is None:
        return None, [reason("snapshot_unknown")]
    spec = pod["spec"]
    if any(TPU in (one.get("resources") or {}).get("limits", {}) for one in spec["containers"]):
        return False, [reason("snapshot_tpu")]
    in_gvisor = spec.get("runtimeClassName") == GVISOR
    if kind == "sandbox":
        return (None, []) if in_gvisor else (False, [reason("snapshot_no_gvisor")])
    gates = [gate.get("conditionType") for gate in spec.get("readinessGates") or []]
    if ACTIVE_GATE not in gates:
        annotations = ((owner or {}).get("metadata") or {}).get("annotations") or {}
        late = annotations.get(ENABLED) == "true"
        return False, [reason("snapshot_addon_late" if late else "snapshot_addon_absent")]
    return (True, []) if in_gvisor else (False, [reason("snapshot_no_gvisor")])


# --- step two: the cluster is asked ---------------------------------------------------------------------------------

_RESOURCES: dict[str, Resource] = {
    "kubeflow": WORKSPACES,
    "notebook_v1": NOTEBOOKS_V1,
    "sandbox": SANDBOXES,
    "statefulset": STATEFULSETS,
}
_TRY_AGAIN = ("cluster_unreachable", "cluster_unauthorized", "cluster_disconnected")


async def identify(surroundings: Surroundings, client: ClusterClient | None, wanted: Wanted = "auto") -> Found:
    """Who owns this pod. At most four short requests; whatever the cluster refuses becomes a reason.

    Args:
        client: None outside a cluster; then only JupyterHub can be the owner.
        wanted: the setting `owner`: `auto`, `local` (pause kernels one by one whatever is here), or a kind.
    """
    if wanted == "local":
        return Found(kind=None)
    return await _Search(surroundings, client).run(wanted)


class _Search:
    """One run of `identify`: collects reasons on its way."""

    def __init__(self, surroundings: Surroundings, client: ClusterClient | None) -> None:
        self._surroundings = surroundings
        self._client = client
        self._reasons: list[Reason] = []
        self._try_again = False

    async def run(self, wanted: Wanted) -> Found:
        pod = await self._own_pod()
        stateful_set = await self._stateful_set(pod)
        claims, contradicted = claims_of(self._surroundings, pod, stateful_set)
        self._reasons += contradicted
        for claim in claims:
            if wanted not in ("auto", claim.kind) or (self._client is None and claim.kind != "jupyterhub"):
                continue
            exists, owner = await self._owner(claim)
            if exists:
                return self._found(claim, pod, owner)
        self._explain_nobody(wanted, pod, controller_of(stateful_set) or controller_of(pod))
        return Found(None, pod=_name(pod), pod_uid=_uid(pod), reasons=self._reasons, try_again=self._try_again)

    def _found(self, claim: Claim, pod: Object | None, owner: Object | None) -> Found:
        if claim.by != "owner reference" and claim.kind != "jupyterhub":
            self._reasons.append(reason("owner_unconfirmed", kind=claim.kind, by=claim.by))
        stateful, why = stateful_of(claim.kind, pod, owner)
        return Found(
            kind=claim.kind,
            namespace=claim.namespace,
            name=claim.name,
            pod=_name(pod) or self._surroundings.pod,
            pod_uid=_uid(pod),
            stateful=stateful,
            reasons=[*self._reasons, *why],
            try_again=self._try_again,
        )

    def _explain_nobody(self, wanted: Wanted, pod: Object | None, controller: Object | None) -> None:
        if wanted != "auto":
            self._reasons.append(reason("owner_not_found", wanted=wanted))
        elif self._surroundings.reason is not None and (pod is None or not self._surroundings.in_cluster):
            self._reasons.append(self._surroundings.reason)
        elif controller is not None:
            self._reasons.append(reason("owner_unsupported", owner=controller["kind"]))
        elif pod is not None:
            self._reasons.append(reason("owner_none"))

    async def _own_pod(self) -> Object | None:
        name, namespace = self._surroundings.pod, self._surroundings.namespace
        if self._client is None or name is None:
            return None
        try:
            return await self._client.get(PODS, name, namespace)
        except ClusterError as error:
            self._note(error)
            if error.code != "cluster_not_found":
                self._reasons.append(reason("pod_unreadable", code=error.code, **_request(error)))
                return None
        found = await self._pod_by_label(namespace)
        if found is None:
            self._reasons.append(reason("pod_not_found", pod=name))
        return found

    async def _pod_by_label(self, namespace: str | None) -> Object | None:
        """A host name is cut at 63 characters, a pod's name is not: look for the one pod of our Workspace."""
        if self._surroundings.workspace is None or self._client is None:
            return None
        selector = f"{WORKSPACE_LABEL}={self._surroundings.workspace[1]}"
        try:
            pods = (await self._client.list(PODS, namespace, label_selector=selector)).items
        except ClusterError:
            return None
        mine = [pod for pod in pods if pod["metadata"]["name"].startswith(self._surroundings.pod or "?")]
        return mine[0] if len(mine) == 1 else None

    async def _stateful_set(self, pod: Object | None) -> Object | None:
        controller = controller_of(pod)
        if self._client is None or pod is None or not is_kind(controller, "apps", "StatefulSet"):
            return None
        assert controller is not None
        try:
            return await self._client.get(STATEFULSETS, controller["name"], pod["metadata"]["namespace"])
        except ClusterError as error:
            self._note(error)
            name = controller["name"]
            self._reasons.append(reason("owner_unreadable", code=error.code, **(_request(error) | {"name": name})))
            return None

    async def _owner(self, claim: Claim) -> tuple[bool, Object | None]:
        """Whether the claimed owner may exist, and the owner itself where it was read."""
        resource = _RESOURCES.get(claim.kind)
        proven = claim.by == "owner reference"
        if resource is None or self._client is None or (proven and claim.kind != "kubeflow"):
            return True, None
        try:
            return True, await self._client.get(resource, claim.name, claim.namespace)
        except ClusterError as error:
            self._note(error)
            if error.code == "cluster_not_found" and not proven:
                self._reasons.append(reason("owner_missing", kind=claim.kind, name=claim.name, by=claim.by))
                return False, None
            return True, None

    def _note(self, error: ClusterError) -> None:
        self._try_again = self._try_again or error.code in _TRY_AGAIN


def _request(error: ClusterError) -> dict[str, Any]:
    """What was asked, for the reason's parameters."""
    return {key: error.params.get(key) for key in ("verb", "resource", "namespace", "name")}


def _name(pod: Object | None) -> str | None:
    return None if pod is None else str(pod["metadata"]["name"])


def _uid(pod: Object | None) -> str | None:
    return None if pod is None else str(pod["metadata"]["uid"])
