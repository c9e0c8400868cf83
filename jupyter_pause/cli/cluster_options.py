# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The options of `jupyter pause` that are about workspaces in a cluster. Nothing of Kubernetes is imported here."""

from __future__ import annotations

import argparse
from typing import Any

#: Seconds that a pause may take: a snapshot of a large GPU pod takes a quarter of an hour (cases.md S27).
PAUSE_TIMEOUT = 2400.0
#: Seconds that a resume may take: a GPU node takes ten minutes to come, and there may be none.
RESUME_TIMEOUT = 1800.0
KINDS = ("kubeflow", "notebook_v1", "statefulset", "sandbox")


def names_a_cluster(options: argparse.Namespace) -> bool:
    """Is a workspace in a cluster meant, and not a Jupyter server that runs here?"""
    given = (getattr(options, name, None) for name in ("namespace", "context", "kubeconfig"))
    return any(value is not None for value in given)


def needs_a_cluster(options: argparse.Namespace) -> str | None:
    """An option that was given and means something only for a workspace in a cluster; None when there is none."""
    flags = ("yes", "no_wait", "accept_difference", "take_back", "without_memory", "snapshot")
    given = ["--" + name.replace("_", "-") for name in flags if getattr(options, name, False)]
    if options.command == "status" and options.name is not None:
        given.append(options.name)
    return given[0] if given else None


def add_cluster_commands(
    commands: Any,
    json_option: argparse.ArgumentParser,
    *,
    status: argparse.ArgumentParser,
    now: argparse.ArgumentParser,
    resume: argparse.ArgumentParser,
    snapshots: argparse.ArgumentParser,
) -> None:
    """`workspaces` and `wait`, and the options that the other commands have for a cluster.

    Args:
        commands: what `add_subparsers` returned.
    """
    workspaces = commands.add_parser("workspaces", parents=[json_option], help="the workspaces in a cluster")
    wait = commands.add_parser("wait", parents=[json_option], help="wait for a workspace in a cluster")
    for parser in (workspaces, wait, status, now, resume, snapshots):
        _add_place(parser)
    workspaces.add_argument("--all-namespaces", "-A", action="store_true", help="those of every namespace")
    status.add_argument("name", metavar="WORKSPACE", nargs="?", help="in a cluster: which; else all of the namespace")
    for parser in (status, now, resume, wait):
        parser.add_argument("--kind", choices=KINDS, default="kubeflow", help="who owns it (default: kubeflow)")
    _add_now(now)
    _add_resume(resume)
    _add_wait(wait)
    snapshots.add_argument(
        "words", metavar="WORKSPACE | delete ID", nargs="*", help="those of one workspace, or delete some for good"
    )
    snapshots.add_argument("--force", action="store_true", help="delete also what the next resume would use")


def _add_place(parser: argparse.ArgumentParser) -> None:
    place = parser.add_argument_group("in a cluster")
    place.add_argument("--namespace", "-n", metavar="NS", help="the namespace; default: that of the context")
    place.add_argument("--context", metavar="C", help="the context of the kubeconfig; default: its current one")
    place.add_argument("--kubeconfig", metavar="FILE", help="default: $KUBECONFIG, else ~/.kube/config")


def _add_now(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--yes", "-y", action="store_true", help="in a cluster: also with files only, without asking")
    _add_following(parser, PAUSE_TIMEOUT)


def _add_resume(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--accept-difference", action="store_true", help="in a cluster: although image, volumes or GPU have changed"
    )
    parser.add_argument("--take-back", action="store_true", help="in a cluster: undo a pause that is under way")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--without-memory", action="store_true", help="in a cluster: start fresh; the snapshot is left alone"
    )
    what.add_argument(
        "--snapshot", metavar="ID", help="in a cluster: restore this snapshot; newer ones are deleted once it is back"
    )
    _add_following(parser, RESUME_TIMEOUT)


def _add_wait(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="WORKSPACE", nargs="?", help="which; not needed when there is only one")
    parser.add_argument(
        "--for",
        dest="wanted",
        choices=["paused", "running", "restored"],
        default="running",
        help="restored: running, and its memory came back (default: running)",
    )
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=float, default=RESUME_TIMEOUT, help="default: %(default).0f"
    )


def _add_following(parser: argparse.ArgumentParser, timeout: float) -> None:
    parser.add_argument("--no-wait", action="store_true", help="in a cluster: only ask, do not follow")
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=float,
        default=timeout,
        help="in a cluster: how long to follow (default: %(default).0f); what was asked for stays asked for",
    )
