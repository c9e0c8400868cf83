# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What the command line says where no server can be asked, and how it says it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_pause.cli import COMMANDS, build_parser
from jupyter_pause.cli import output as cli_output
from jupyter_pause.cli.interrupt import HeldInterrupt
from jupyter_pause.cli.server import CliError, NoServerError, ServerInfo, choose_server, running_servers

from .conftest import CommandLine


def test_help_names_every_command_and_every_exit_code(nobody: CommandLine) -> None:
    done = nobody("--help")
    assert done.code == 0
    for word in (*COMMANDS, "exit codes", "  3 ", "  4 "):
        assert word in done.out


def test_help_imports_nothing_slow() -> None:
    code = (
        "import sys\nfrom jupyter_pause.cli import build_parser\nbuild_parser().format_help()\n"
        "slow = ('jupyter_server', 'tornado', 'pydantic', 'psutil', 'traitlets', 'zmq')\n"
        "print([m for m in slow if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_has_json_and_help(command: str, nobody: CommandLine) -> None:
    done = nobody(command, "--help")
    assert done.code == 0
    assert "--json" in done.out


@pytest.mark.parametrize("words", [[], ["pause"], ["now", "--on-loss", "maybe"], ["show"], ["drill", "--size", "x"]])
def test_a_wrong_command_line_is_2(words: list[str], nobody: CommandLine) -> None:
    done = nobody(*words)
    assert done.code == 2
    assert "--help" in done.err
    done = nobody(*words, "--json")
    assert done.code == 2
    assert done.json["error"]["code"] == "usage"


@pytest.mark.parametrize("words", [["status"], ["now"], ["resume"], ["now", "a.ipynb"]])
def test_no_server_is_4_and_says_what_to_do(words: list[str], nobody: CommandLine) -> None:
    done = nobody(*words)
    assert done.code == 4
    assert done.out == ""
    assert "jupyter lab" in done.err
    assert "--url" in done.err
    done = nobody(*words, "--json")
    assert done.code == 4
    assert done.json == {
        "command": words[0],
        "ok": False,
        "error": {"code": "no_server", "message": done.json["error"]["message"]},
    }


def test_a_server_that_does_not_answer_is_4(nobody: CommandLine) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        done = nobody("status", "--url", f"http://127.0.0.1:{free.getsockname()[1]}/")
    assert done.code == 4
    assert "does not answer" in done.err


def test_a_url_that_is_none_is_2(nobody: CommandLine) -> None:
    assert nobody("status", "--url", "ftp://example.invalid").code == 2


def test_stale_and_broken_runtime_files_are_no_servers(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    base = {"url": "http://127.0.0.1:1/", "token": "t", "root_dir": "/x"}
    (tmp_path / "jpserver-1.json").write_text(json.dumps({**base, "pid": gone.pid}))
    (tmp_path / "jpserver-2.json").write_text("{")
    (tmp_path / "jpserver-3.json").write_text(json.dumps({"pid": os.getpid()}))
    (tmp_path / "jpserver-4.json").write_text(json.dumps({**base, "url": "http://127.0.0.1:4/a", "pid": os.getpid()}))
    assert [server.url for server in running_servers(tmp_path)] == ["http://127.0.0.1:4/a/"]
    assert (tmp_path / "jpserver-1.json").exists()


def _servers(tmp_path: Path) -> list[ServerInfo]:
    (tmp_path / "work" / "deep").mkdir(parents=True)
    return [
        ServerInfo("http://127.0.0.1:8888/", "a", str(tmp_path), 11),
        ServerInfo("http://127.0.0.1:8889/", "b", str(tmp_path / "work"), 12),
        ServerInfo("http://127.0.0.1:8890/", "c", "/elsewhere", 13),
    ]


def test_of_several_servers_the_closest_folder_counts(tmp_path: Path) -> None:
    servers = _servers(tmp_path)
    assert choose_server(servers, None, tmp_path / "work" / "deep").pid == 12
    assert choose_server(servers, None, tmp_path).pid == 11
    with pytest.raises(CliError) as caught:
        choose_server(servers, None, Path("/"))
    assert (caught.value.code, caught.value.exit_code) == ("several_servers", 2)
    assert "8888" in str(caught.value)
    assert "--server" in str(caught.value)


@pytest.mark.parametrize("wanted", ["8889", "12", "http://127.0.0.1:8889", "work"])
def test_a_server_is_chosen_by_port_pid_url_or_folder(
    tmp_path: Path, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert choose_server(_servers(tmp_path), wanted, Path("/")).pid == 12


def test_a_server_that_is_not_there_is_4(tmp_path: Path) -> None:
    with pytest.raises(NoServerError, match="8888"):
        choose_server(_servers(tmp_path), "9999", Path("/"))


def test_tokens_are_not_printed() -> None:
    assert "secret" not in json.dumps(ServerInfo("http://x/", "secret").public())


def test_offline_without_a_folder_there_are_no_checkpoints(nobody: CommandLine, tmp_path: Path) -> None:
    done = nobody("list")
    assert done.code == 0
    assert "no checkpoints" in done.out
    done = nobody("list", "--json", "--dir", str(tmp_path / "nothing"))
    assert done.json == {"command": "list", "ok": True, "source": "directory", "checkpoints": []}
    assert not (tmp_path / "nothing").exists()
    assert nobody("show", "abcd").code == 1
    assert nobody("delete", "0" * 32).code == 1


def test_offline_reads_the_configured_folder(nobody: CommandLine, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.mkdir(exist_ok=True)
    (config / "jupyter_server_config.py").write_text("c.PauseApp.checkpoint_dir = '/srv/somewhere'\n")
    assert "/srv/somewhere" in nobody("list").out
    (config / "jupyter_jupyter_pause_config.json").write_text('{"PauseApp": {"checkpoint_dir": "/srv/closer"}}')
    assert "/srv/closer" in nobody("list").out


def test_a_broken_configuration_is_a_sentence(nobody: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "config").mkdir(exist_ok=True)
    (tmp_path / "config" / "jupyter_server_config.py").write_text("c.PauseApp.checkpoint_dir = (\n")
    done = nobody("list")
    assert done.code == 1
    assert "--dir" in done.err


@pytest.mark.parametrize(
    ("count", "text"), [(None, "unknown"), (0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (300 << 20, "300 MiB")]
)
def test_sizes_are_for_people(count: int | None, text: str) -> None:
    assert cli_output.size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "unknown"), (0.44, "0.4 s"), (59.4, "59 s"), (185, "3 min 5 s"), (7800, "2 h 10 min"), (360000, "4 d 4 h")],
)
def test_durations_are_for_people(seconds: float | None, text: str) -> None:
    assert cli_output.duration(seconds) == text


def test_tables_do_not_drive_the_terminal() -> None:
    assert "\x1b" not in cli_output.table(["A"], [["\x1b[31mred"]])


def test_every_option_is_explained() -> None:
    parser = build_parser()
    for command in next(action for action in parser._actions if action.choices).choices.values():  # type: ignore[union-attr]
        assert all(action.help for action in command._actions), command.prog


def test_ctrl_c_waits_until_the_server_has_answered_and_is_not_forgotten(capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGINT)
    held = HeldInterrupt(cli_output.Output(as_json=False))
    held.hold()
    signal.raise_signal(signal.SIGINT)
    assert "Waiting for the server's answer" in capsys.readouterr().err
    with pytest.raises(KeyboardInterrupt):
        held.release()
    assert signal.getsignal(signal.SIGINT) is before
    held.release()

    held.hold()
    signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        held.release()
    assert signal.getsignal(signal.SIGINT) is before
