# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""`jupyter pause ...`: the options, and how results and errors leave the program.

Everything else is imported when it is needed, so that `jupyter pause --help` is quick.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from typing import TYPE_CHECKING, NoReturn

from jupyter_pause import __version__

from .cluster_options import add_cluster_commands, names_a_cluster, needs_a_cluster

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .output import Output
    from .server import CliError

EXIT_CODES = """\
exit codes:
  0   done
  1   it failed; the message says what to do next
  2   the command line is not clear (also: several servers, kernels or workspaces fit)
  3   something would be lost or differs, and nobody accepted that; nothing was changed
  4   no Jupyter server with jupyter-pause, or no API server of a cluster, can be reached
  5   in a cluster: the time is up, and there is no capacity yet; the request stays
  130 interrupted
"""

#: Command -> module and function.
COMMANDS = {
    "status": ("cli.commands", "status"),
    "now": ("cli.commands", "now"),
    "resume": ("cli.commands", "resume"),
    "list": ("cli.checkpoints", "list_checkpoints"),
    "show": ("cli.checkpoints", "show"),
    "delete": ("cli.checkpoints", "delete"),
    "drill": ("drill.command", "drill"),
    "workspaces": ("cli.workspaces", "workspaces"),
    "wait": ("cli.workspaces", "wait"),
    "snapshots": ("cli.snapshots", "snapshots"),
}

#: The same words for a workspace in a cluster: taken when the command line names a namespace, context or kubeconfig.
IN_CLUSTER = {name: ("cli.workspaces", name) for name in ("status", "now", "resume", "snapshots")}


class _UsageError(Exception):
    """The command line is not one of ours; the text says why."""


class _Parser(argparse.ArgumentParser):
    """Reports what is wrong with a command line the way every other error is reported."""

    def error(self, message: str) -> NoReturn:
        raise _UsageError(f"{message[:1].upper()}{message[1:]}. See `{self.prog} --help`.")


def build_parser() -> argparse.ArgumentParser:
    """The parser with all commands."""
    parser = _Parser(
        prog="jupyter pause",
        description="Pause notebooks: their state goes to disk, RAM and VRAM are free, and they come back in place. "
        "With --namespace, --context or --kubeconfig: whole workspaces in a cluster.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    json_option, server, folder = _common()

    status = commands.add_parser("status", parents=[server, json_option], help="what runs and what is paused")
    now = commands.add_parser("now", parents=[server, json_option], help="pause notebooks, or a workspace")
    resume = commands.add_parser("resume", parents=[server, json_option], help="bring back what is paused")
    _add_now(now)
    _add_resume(resume)
    commands.add_parser(
        "list", parents=[server, folder, json_option], help="the checkpoints on disk (no server needed)"
    )
    show = commands.add_parser("show", parents=[server, folder, json_option], help="what is in a checkpoint")
    show.add_argument("id", metavar="CHECKPOINT", help="its id, or the beginning of it")
    delete = commands.add_parser("delete", parents=[server, folder, json_option], help="delete checkpoints for good")
    delete.add_argument("id", metavar="CHECKPOINT", nargs="+", help="its id, or the beginning of it")
    delete.add_argument("--force", action="store_true", help="also when a paused notebook would come back from it")
    _add_drill(commands.add_parser("drill", parents=[json_option], help="try it all on a throw-away notebook"))
    snapshots = commands.add_parser("snapshots", parents=[server, json_option], help="pod snapshots (in a cluster)")
    add_cluster_commands(commands, json_option, status=status, now=now, resume=resume, snapshots=snapshots)
    return parser


def _common() -> tuple[_Parser, _Parser, _Parser]:
    json_option = _Parser(add_help=False)
    json_option.add_argument("--json", action="store_true", help="print one JSON object for programs")
    server = _Parser(add_help=False)
    which = server.add_argument_group("which server")
    which.add_argument("--server", metavar="WHICH", help="a running one, by port, process id or root folder")
    which.add_argument("--url", help="its address, with the base URL")
    which.add_argument("--token", help="its token (better: the environment variable JUPYTER_TOKEN)")
    folder = _Parser(add_help=False)
    place = folder.add_argument_group("without a server")
    place.add_argument("--offline", action="store_true", help="read the configured checkpoint folder")
    place.add_argument("--dir", metavar="FOLDER", help="read this checkpoint folder")
    return json_option, server, folder


def _add_now(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="NOTEBOOK|KERNEL", nargs="*", help="which; not needed when only one runs")
    parser.add_argument("--all", action="store_true", help="every kernel that can be paused")
    parser.add_argument("--on-loss", choices=["refuse", "accept"], help="when something would not come back")
    parser.add_argument(
        "--when-busy",
        choices=["wait", "refuse", "interrupt"],
        default="wait",
        help="when a cell is running (default: wait for its end)",
    )
    parser.add_argument("--preview", action="store_true", help="only say what would be restored")


def _add_resume(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="NOTEBOOK|KERNEL", nargs="?", help="which; not needed if only one is")
    parser.add_argument("--checkpoint", metavar="ID", help="this checkpoint, as a session of NOTEBOOK")
    parser.add_argument(
        "--from",
        dest="source",
        choices=["auto", "snapshot", "checkpoint"],
        help="the exact snapshot, the checkpoint, or the first that works (default)",
    )
    parser.add_argument("--on-difference", choices=["refuse", "accept"], help="when Python or packages have changed")


def _add_drill(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--keep", action="store_true", help="leave the folder of the drill for a look")
    parser.add_argument("--junit", metavar="FILE", help="write the report as JUnit XML too")
    parser.add_argument("--kernel", metavar="NAME", default="python3", help="the kernel to try (default: python3)")
    parser.add_argument("--gpu", action="store_true", help="arrays on a GPU too; fails where there is none")
    parser.add_argument("--size", metavar="MIB", type=int, default=128, help="size of the large array (default: 128)")
    parser.add_argument(
        "--server-option",
        metavar="OPTION",
        action="append",
        default=[],
        help="handed to the throw-away server, e.g. --server-option=--PauseApp.verify=before",
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code. Tracebacks never reach a person."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        options = build_parser().parse_args(words)
    except _UsageError as error:
        from .output import Output
        from .server import CliError

        command = next((word for word in words if word in COMMANDS), None)
        return _report(command, CliError("usage", str(error), exit_code=2), Output(as_json="--json" in words))
    return _run(options)


def _run(options: argparse.Namespace) -> int:
    from .output import Output
    from .server import CliError

    output = Output(as_json=options.json)
    chosen = {**COMMANDS, **IN_CLUSTER} if names_a_cluster(options) else COMMANDS
    module, name = chosen[options.command]
    try:
        lost = None if names_a_cluster(options) else needs_a_cluster(options)
        if lost is not None:
            raise CliError("usage", f"{lost} is about a workspace in a cluster: name its --namespace.", exit_code=2)
        command = getattr(importlib.import_module(f"jupyter_pause.{module}"), name)
        code: int = command(options, output)
    except CliError as error:
        return _report(options.command, error, output)
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
    except BrokenPipeError:  # `jupyter pause list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if os.environ.get("JUPYTER_PAUSE_DEBUG"):
            raise
        return _report(options.command, _unexpected(error), output)
    return code


def _unexpected(error: Exception) -> CliError:
    from .server import CliError

    return CliError(
        "internal",
        f"Something went wrong inside jupyter-pause ({type(error).__name__}: {error}). "
        "Set JUPYTER_PAUSE_DEBUG=1 to see where, and please report it.",
    )


def _report(command: str | None, error: CliError, output: Output) -> int:
    """One sentence (and the table behind it) for people, one object for programs."""
    shown = ("losses", "differences", "operation", "params", "servers", "workspace")
    body = {key: error.body[key] for key in shown if error.body.get(key)}
    output.result(command=command, ok=False, error={"code": error.code, "message": str(error), **body})
    if not output.as_json:
        from .follow import show_question

        show_question(output, error.body)
        output.complain(str(error) + _next_step(error.code))
    return error.exit_code


def _next_step(code: str) -> str:
    """What to type next, where the server's sentence speaks of its own interface."""
    if code == "would_lose":
        return " On the command line: --on-loss accept."
    if code == "environment_differs":
        return " On the command line: --on-difference accept."
    return ""
