# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""`jupyter pause` against a real server with real kernels."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

import jupyter_pause
from tests.harness import TOKEN, ServerProcess, free_port, until

from .conftest import CommandLine, Terminal

CONTRACT: dict[str, Any] = yaml.safe_load((Path(jupyter_pause.__file__).parent / "openapi.yaml").read_text())


def fits(value: Any, name: str) -> None:
    """Does `value` fit the schema of that name in openapi.yaml?"""

    def convert(node: Any) -> Any:
        if isinstance(node, list):
            return [convert(part) for part in node]
        if not isinstance(node, dict):
            return node
        made = {key: convert(part) for key, part in node.items() if key != "nullable"}
        return {"anyOf": [made, {"type": "null"}]} if node.get("nullable") else made

    schema = {"$ref": f"#/components/schemas/{name}", "components": convert(CONTRACT["components"])}
    jsonschema.validate(value, schema)


def alive(server: ServerProcess, kernel: str) -> str:
    row = server.row(kernel)
    assert row is not None
    state: str = row["state"]
    return state


def test_pause_and_resume_in_words(server: ServerProcess, line: CommandLine) -> None:
    assert "No kernel" in line("status").out
    kernel = server.notebook("work.ipynb")["kernel"]["id"]
    server.run(kernel, "import secrets; token = secrets.token_hex(8); data = bytearray(3 << 20)")
    token = server.run(kernel, "", "token")
    shown = line("status")
    assert shown.code == 0
    assert "work.ipynb" in shown.out
    assert "running" in shown.out

    paused = line("now")
    assert paused.code == 0, paused
    assert "work.ipynb is paused" in paused.out
    assert "the process has ended" in paused.out
    assert "jupyter pause resume work.ipynb" in paused.out
    assert "paused" in line("status").out

    resumed = line("resume")
    assert resumed.code == 0, resumed
    assert "work.ipynb is back, restored from the checkpoint" in resumed.out
    assert server.run(kernel, "", "token") == token
    nothing = line("resume")
    assert nothing.code == 1
    assert "Nothing is paused" in nothing.err


def test_what_was_not_tried_out_is_said(server: ServerProcess, line: CommandLine) -> None:
    kernel = server.notebook("work.ipynb")["kernel"]["id"]
    server.run(
        kernel,
        "class Writes:\n    def __init__(self): self.a = 1\n"
        "    def __setstate__(self, state): open('/nowhere/x', 'w')\nbox = [Writes()]",
    )
    paused = line("now")
    assert paused.code == 0, paused
    assert "not tried out: box[0]" in paused.out


def test_json_fits_the_contract(server: ServerProcess, line: CommandLine) -> None:
    kernel = server.notebook("a.ipynb")["kernel"]["id"]
    server.run(kernel, "x = 1")
    status = line("status", "--json").json
    assert (status["command"], status["ok"]) == ("status", True)
    assert TOKEN not in str(status)
    fits(status["state"], "ServerState")
    preview = line("now", "--preview", "--json").json
    (found,) = preview["preview"]
    fits(found, "Inventory")
    assert found["complete"]
    assert [(item["name"], item["fate"]) for item in found["ram"]] == [("x", "in checkpoint")]
    assert found["processes"][0]["bytes"] > 10_000_000
    assert (found["connections"], found["losses"]) == ([], [])
    assert found["checkpoint_place"]["writable"]
    assert found["estimate"]["basis"] == "assumed"
    paused = line("now", kernel, "--json").json
    assert paused["ok"]
    fits(paused["operation"], "Operation")
    fits(paused["kernels"][0], "KernelRow")
    listed = line("list", "--json").json
    assert listed["source"] == "server"
    fits(listed["checkpoints"][0], "Checkpoint")
    shown = line("show", listed["checkpoints"][0]["id"], "--json").json
    fits(shown["checkpoint"], "Checkpoint")
    resumed = line("resume", "a.ipynb", "--json").json
    again = line("now", "--preview", "--json").json["preview"][0]
    assert again["estimate"]["basis"] == "measured"
    assert resumed["operation"]["outcome"] == "restored"
    fits(resumed["kernels"][0], "KernelRow")


def test_what_would_be_lost_is_3_and_changes_nothing(server: ServerProcess, line: CommandLine) -> None:
    kernel = server.notebook("a.ipynb")["kernel"]["id"]
    server.run(kernel, "gen = (i for i in range(3)); kept = 5")
    refused = line("now")
    assert refused.code == 3
    assert "gen" in refused.err
    assert "generator" in refused.err
    assert "--on-loss accept" in refused.err
    assert alive(server, kernel) == "running"
    refused = line("now", "--json", "--on-loss", "refuse")
    assert refused.code == 3
    assert refused.json["error"]["code"] == "would_lose"
    assert [loss["path"] for loss in refused.json["error"]["losses"]] == ["gen"]

    assert line("now", "--on-loss", "accept").code == 0
    resumed = line("resume")
    assert resumed.code == 0
    assert "back in part" in resumed.out
    assert "gen" in resumed.out
    assert server.run(kernel, "", "kept") == "5"


def test_losses_found_in_a_busy_kernel_are_refused_without_a_person(server: ServerProcess, line: CommandLine) -> None:
    kernel = server.notebook("a.ipynb")["kernel"]["id"]
    flag = server.base / "go"
    with server.client(kernel) as client:
        client.execute(
            f"import os, time\nwhile not os.path.exists({str(flag)!r}): time.sleep(0.02)\ng = (i for i in 'ab')"
        )
        until(lambda: client.get_iopub_msg(timeout=60)["content"].get("execution_state") == "busy", "it is busy")
        assert line("now", "--when-busy", "refuse").code == 1
        running = line.start("now", "--json")
        until(lambda: alive(server, kernel) == "pausing", "the pause waits")
        flag.touch()
        out, _ = running.communicate(timeout=120)
    assert running.returncode == 3, out
    assert '"would_lose"' in out
    assert alive(server, kernel) == "running"


def test_targets(server: ServerProcess, line: CommandLine) -> None:
    (server.root / "deep").mkdir()
    first = server.notebook("deep/a.ipynb")["kernel"]["id"]
    second = server.notebook("b.ipynb")["kernel"]["id"]
    unclear = line("now")
    assert unclear.code == 2
    assert "deep/a.ipynb" in unclear.err
    assert "b.ipynb" in unclear.err
    assert line("now", "c.ipynb").code == 1
    assert line("now", "b.ipynb", "--all").code == 2
    # Typed as a person would, inside the folder.
    assert line("now", "a.ipynb", cwd=server.root / "deep").code == 0
    assert (alive(server, first), alive(server, second)) == ("paused", "running")
    assert line("now", second[:8]).code == 0
    assert line("resume").code == 2
    assert line("resume", first[:8]).code == 0
    assert line("resume", "./b.ipynb").code == 0
    both = line("now", "--all")
    assert both.code == 0
    assert both.out.count("is paused") == 2
    assert line("now", "--all").code == 1


def test_ctrl_c_cancels(server: ServerProcess, line: CommandLine) -> None:
    kernel = server.notebook("a.ipynb")["kernel"]["id"]
    flag = server.base / "go"
    with server.client(kernel) as client:
        message = client.execute(f"import os, time\nwhile not os.path.exists({str(flag)!r}): time.sleep(0.02)\nx = 1")
        until(lambda: client.get_iopub_msg(timeout=60)["content"].get("execution_state") == "busy", "it is busy")
        running = line.start("now")
        until(lambda: alive(server, kernel) == "pausing", "the pause waits")
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=120)
        assert running.returncode == 1, err
        assert "Cancelled" in err
        assert "Traceback" not in err
        flag.touch()
        until(lambda: client.get_shell_msg(timeout=60)["parent_header"].get("msg_id") == message, "the cell ends")
    assert alive(server, kernel) == "running"
    assert server.run(kernel, "", "x") == "1"


def test_on_a_terminal_progress_is_shown_and_the_person_is_asked(server: ServerProcess, line: CommandLine) -> None:
    kernel = server.notebook("a.ipynb")["kernel"]["id"]
    server.run(kernel, "import os; gen = (i for i in range(3)); big = bytearray(os.urandom(1 << 20) * 64)")
    terminal = Terminal(line, "now")
    terminal.wait_for("Pause anyway? [y/N]")
    assert "gen" in terminal.seen
    terminal.type("n\n")
    assert terminal.end() == 3
    assert alive(server, kernel) == "running"

    terminal = Terminal(line, "now")
    terminal.wait_for("[y/N]")
    terminal.type("y\n")
    assert terminal.end() == 0, terminal.seen
    assert "Pausing: " in terminal.seen
    assert "is paused" in terminal.seen
    assert alive(server, kernel) == "paused"


def test_checkpoints_on_the_server(server: ServerProcess, line: CommandLine) -> None:
    kernel = server.notebook("a.ipynb")["kernel"]["id"]
    server.run(kernel, "x = 1; import os; os.environ['MY_TOKEN'] = 'hunter2'")
    paused = line("now", "--json").json
    name = paused["operation"]["checkpoint"]
    listed = line("list")
    assert name[:12] in listed.out
    assert "a.ipynb" in listed.out
    assert "in use" in listed.out
    shown = line("show", name[:6])
    assert shown.code == 0
    assert "signature:  right" in shown.out
    assert "MY_TOKEN" in shown.out
    assert "hunter2" not in shown.out
    refused = line("delete", name[:6])
    assert refused.code == 1
    assert line("delete", name, "--json").json["error"]["code"] == "checkpoint_in_use"
    assert line("resume").code == 0
    deleted = line("delete", name[:6])
    assert deleted.code == 0
    assert not (server.checkpoints / "checkpoints" / name).exists()
    assert line("show", name[:6]).code == 1


def test_checkpoints_without_a_server(server: ServerProcess, line: CommandLine) -> None:
    for number in range(2):
        kernel = server.notebook(f"{number}.ipynb")["kernel"]["id"]
        server.run(kernel, f"x = {number}; gen = (i for i in 'a')")
        assert line("now", kernel, "--on-loss", "accept").code == 0
    server.kill()
    listed = line("list", "--json").json
    assert listed["source"] == "directory"
    rows = listed["checkpoints"]
    assert [(row["path"], row["in_use"], row["signature_ok"]) for row in rows] == [
        ("1.ipynb", True, True),
        ("0.ipynb", True, True),
    ]
    for row in rows:
        fits(row, "Checkpoint")
    first, second = (row["id"] for row in rows)
    shown = line("show", first)
    assert shown.code == 0
    assert "Not in it:" in shown.out
    assert line("delete", first).code == 1
    assert line("delete", first, "--force").code == 0
    assert not (server.checkpoints / "checkpoints" / first).exists()

    manifest = server.checkpoints / "checkpoints" / second / "manifest.json"
    manifest.write_bytes(manifest.read_bytes().replace(b'"x"', b'"y"'))
    row = line("show", second, "--json").json["checkpoint"]
    assert row["signature_ok"] is False
    assert "wrong" in line("show", second).out
    elsewhere = server.base / "elsewhere"
    shutil.copytree(server.checkpoints, elsewhere)
    assert line("list", "--dir", str(elsewhere), "--json").json["checkpoints"][0]["id"] == second


def test_two_servers(server: ServerProcess, line: CommandLine, tmp_path: Path) -> None:
    other = ServerProcess(tmp_path / "other")
    other.runtime = server.runtime  # as two servers of one user have it
    try:
        other.start()
        kernel = server.notebook("a.ipynb")["kernel"]["id"]
        assert f":{server.port}/" in line("status").out  # in its own root folder
        unclear = line("status", cwd=Path("/"))
        assert unclear.code == 2
        assert str(server.port) in unclear.err
        assert str(other.port) in unclear.err
        chosen = line("status", "--json", "--server", str(server.port), cwd=Path("/"))
        assert [row["id"] for row in chosen.json["state"]["kernels"]] == [kernel]
        assert line("status", "--json", "--server", str(other.root), cwd=Path("/")).json["state"]["kernels"] == []
        assert line("status", "--server", "1", cwd=Path("/")).code == 4
    finally:
        other.clean_up()


@pytest.mark.parametrize("base_url", ["/", "/user/some%20one/"])
def test_by_url_and_token(tmp_path: Path, base_url: str) -> None:
    server = ServerProcess(tmp_path, base_url=base_url)
    stranger = CommandLine({**server.env, "JUPYTER_RUNTIME_DIR": str(tmp_path / "no")}, tmp_path)
    try:
        server.start()
        url = f"http://127.0.0.1:{server.port}{base_url}"
        assert stranger("status", "--url", url, "--token", TOKEN).code == 0
        assert stranger("status", "--url", url.rstrip("/"), JUPYTER_TOKEN=TOKEN).code == 0
        for words in ([], ["--token", "wrong"]):
            refused = stranger("status", "--url", url, *words)
            assert refused.code == 1
            assert "token" in refused.err
            assert TOKEN not in refused.err
    finally:
        server.clean_up()


def test_a_server_without_the_extension_is_4(tmp_path: Path) -> None:
    prepared = ServerProcess(tmp_path)
    words = ["--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1", f"--ServerApp.port={free_port()}"]
    off = "--ServerApp.jpserver_extensions={'jupyter_pause': False}"
    with (tmp_path / "server.log").open("wb") as log:
        plain = subprocess.Popen(
            [sys.executable, "-m", "jupyter_server", *words, off],
            env=prepared.env,
            cwd=prepared.root,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        line = CommandLine(prepared.env, prepared.root)
        done = until(
            lambda: (found := line("status", "--json")).code == 4 and "installed" in found.out and found, "404"
        )
        assert done.json["error"]["code"] == "not_installed"
        assert "without jupyter-pause" in done.json["error"]["message"]
    finally:
        plain.kill()
        plain.wait()


def test_a_failed_resume_says_so(server: ServerProcess, line: CommandLine) -> None:
    kernel = server.notebook("a.ipynb")["kernel"]["id"]
    server.run(kernel, "x = 1")
    name = line("now", "--json").json["operation"]["checkpoint"]
    shutil.rmtree(server.checkpoints / "checkpoints" / name)
    failed = line("resume", "--json")
    assert failed.code == 1
    assert failed.json["error"]["code"] == "checkpoint_missing"
    assert alive(server, kernel) == "paused"


def test_a_checkpoint_opens_as_another_notebook(server: ServerProcess, line: CommandLine) -> None:
    kernel = server.notebook("a.ipynb")["kernel"]["id"]
    server.run(kernel, "x = 41")
    name = line("now", "--json").json["operation"]["checkpoint"]
    server.request("DELETE", f"api/kernels/{kernel}")
    done = line("resume", "again.ipynb", "--checkpoint", name[:8], "--json")
    assert done.code == 0, done
    row = done.json["kernels"][0]
    assert row["path"] == "again.ipynb"
    assert server.run(row["id"], "", "x + 1") == "42"


def test_after_a_restart_while_paused_the_checkpoint_is_named(server: ServerProcess, line: CommandLine) -> None:
    kernel = server.notebook("a.ipynb")["kernel"]["id"]
    server.run(kernel, "x = 1")
    assert line("now").code == 0
    server.request("POST", f"api/kernels/{kernel}/restart", {})
    row = until(lambda: (r := server.row(kernel)) and r["state"] == "running" and r, "it is restarted")
    refused = line("resume", "a.ipynb")
    assert refused.code == 1
    name = row["checkpoint"]["id"][:8]
    assert "restarted while it was paused" in refused.err and f"resume --checkpoint {name}" in refused.err
    assert line("resume", "--checkpoint", name).code == 0
