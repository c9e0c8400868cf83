# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""`jupyter pause workspaces`, and `now|resume|status|wait|snapshots` of a workspace in a cluster.

From a laptop, over a kubeconfig, with the rights of the person who calls. Each returns its exit code.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from .cluster_options import names_a_cluster
from .output import Output
from .server import CliError
from .workspaces_client import Cluster, open_cluster

if TYPE_CHECKING:
    import argparse

    from jupyter_pause.cluster.access import Right

    from .workspaces_target import Target


def workspaces(options: argparse.Namespace, output: Output) -> int:
    """`jupyter pause workspaces`."""
    from .workspaces_list import list_workspaces

    if options.all_namespaces and options.namespace is not None:
        raise CliError("usage", "Give --namespace or --all-namespaces, not both.", exit_code=2)
    return asyncio.run(_with_cluster(options, lambda cluster: list_workspaces(cluster, options, output)))


def status(options: argparse.Namespace, output: Output) -> int:
    """`jupyter pause status [NAME] --namespace NS`."""
    from .workspaces_list import list_workspaces, show_other, show_workspace

    _no_server(options)
    name = options.name
    if options.kind != "kubeflow":
        return asyncio.run(_with_target(options, name, lambda target: show_other(target, output)))
    if name is None:
        return asyncio.run(_with_cluster(options, lambda cluster: list_workspaces(cluster, options, output)))
    return asyncio.run(_with_cluster(options, lambda cluster: show_workspace(cluster, name, output)))


def now(options: argparse.Namespace, output: Output) -> int:
    """`jupyter pause now [NAME] --namespace NS`."""
    from .workspaces_pause import pause

    _no_server(options)
    if options.all or len(options.target) > 1:
        raise CliError("usage", "In a cluster, give one workspace at a time.", exit_code=2)
    if options.when_busy != "wait":
        raise CliError("usage", "--when-busy is for a running server: a cell is not seen from outside.", exit_code=2)
    name = options.target[0] if options.target else None
    return asyncio.run(_with_target(options, name, lambda target: pause(target, options, output)))


def resume(options: argparse.Namespace, output: Output) -> int:
    """`jupyter pause resume [NAME] --namespace NS`."""
    from .workspaces_resume import resume as bring_back

    _no_server(options)
    if options.checkpoint is not None:
        raise CliError("usage", "--checkpoint is for a running server; it resumes kernels.", exit_code=2)
    return asyncio.run(_with_target(options, options.target, lambda target: bring_back(target, options, output)))


def wait(options: argparse.Namespace, output: Output) -> int:
    """`jupyter pause wait [NAME] --namespace NS --for ...`."""
    from .workspaces_resume import wait as wait_for

    if not names_a_cluster(options):
        raise CliError(
            "usage", "`jupyter pause wait` is about a workspace in a cluster: name its --namespace.", exit_code=2
        )
    return asyncio.run(_with_target(options, options.name, lambda target: wait_for(target, options, output)))


def snapshots(options: argparse.Namespace, output: Output) -> int:
    """`jupyter pause snapshots [NAME | delete ID ...] --namespace NS`."""
    from .workspaces_snapshots import snapshots as act

    _no_server(options)
    return asyncio.run(_with_cluster(options, lambda cluster: act(cluster, options, output)))


def _no_server(options: argparse.Namespace) -> None:
    """One or the other: a server that runs here, or a workspace in a cluster."""
    if options.server is not None or options.url is not None:
        raise CliError("usage", "Give a server (--server, --url) or a place in a cluster, not both.", exit_code=2)


async def _with_cluster(options: argparse.Namespace, act: Callable[[Cluster], Awaitable[int]]) -> int:
    async with open_cluster(options) as cluster:
        return await act(cluster)


async def _with_target(options: argparse.Namespace, name: str | None, act: Callable[[Target], Awaitable[int]]) -> int:
    async def on_target(cluster: Cluster) -> int:
        async with _started(cluster, options.kind, name or await _only_one(cluster, options.kind)) as target:
            return await act(target)

    return await _with_cluster(options, on_target)


@asynccontextmanager
async def _started(cluster: Cluster, kind: str, name: str) -> AsyncIterator[Target]:
    target = _target(cluster, kind, name)
    try:
        await target.start()
        yield target
    finally:
        await target.stop()


def _target(cluster: Cluster, kind: str, name: str) -> Target:
    """Its owner, as the server has it too. Raises CliError for a kind that this installation has no owner for."""
    from jupyter_pause.clock import SYSTEM_CLOCK
    from jupyter_pause.owners.base import OwnerContext
    from jupyter_pause.owners.opening import open_owner

    from .workspaces_target import KubeflowTarget, Target

    if kind == "kubeflow":
        return KubeflowTarget(cluster, name)
    context = OwnerContext(cluster.client, cluster.namespace, name, pod=None, clock=SYSTEM_CLOCK)
    try:
        owner = open_owner(kind, context)
    except LookupError:
        raise CliError("usage", f"There is no owner of the kind {kind} in this installation.", exit_code=2) from None
    return Target(cluster, owner, _right(kind, cluster.namespace, name))


def _right(kind: str, namespace: str, name: str) -> Right:
    """What a pause and a resume need, by kind."""
    from jupyter_pause.cluster.access import Right
    from jupyter_pause.cluster.resources import NOTEBOOKS_V1, SANDBOXES, STATEFULSETS, WORKSPACES

    resource, subresource = {
        "kubeflow": (WORKSPACES, ""),
        "notebook_v1": (NOTEBOOKS_V1, ""),
        "statefulset": (STATEFULSETS, "scale"),
        "sandbox": (SANDBOXES, ""),
    }[kind]
    return Right("patch", resource, namespace, name, subresource)


async def _only_one(cluster: Cluster, kind: str) -> str:
    """The only workspace of the namespace. Raises CliError `usage` (exit code 2) when there is not just one."""
    resource = _right(kind, cluster.namespace, "").resource
    found: list[dict[str, Any]] = (await cluster.client.list(resource, cluster.namespace)).items
    names = sorted(str(item["metadata"]["name"]) for item in found)
    if len(names) == 1:
        return names[0]
    if not names:
        raise CliError("workspace_not_found", f"There is no {resource.kind} in namespace {cluster.namespace}.")
    raise CliError("usage", f"Which one? In namespace {cluster.namespace} there are: {', '.join(names)}.", exit_code=2)
