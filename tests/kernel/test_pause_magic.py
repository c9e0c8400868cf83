# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""`%pause`: acts right after its own cell; queued cells are neither run nor lost; it never ends in a traceback."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest
from jupyter_client.blocking import BlockingKernelClient

from .livekernel import Door, LiveKernel, until


@pytest.fixture
def linked(kernel: LiveKernel, door: Door) -> LiveKernel:
    """A kernel whose file names the door; the address is looked up at call time, so it may be written now."""
    kernel.write_kernel_file(link=door.path)
    return kernel


def _prepare(kernel: LiveKernel, door: Door) -> Path:
    staging = kernel.new_staging()
    door.answers["pause"] = {"ok": True, "operation": "op", "staging": str(staging)}
    return staging


def test_pause_in_a_run_all(kernel_of_any_python: LiveKernel, door: Door) -> None:
    kernel = kernel_of_any_python
    kernel.write_kernel_file(link=door.path)
    staging = _prepare(kernel, door)
    cells = ["a = 1", "b = 2\n%pause\nc = 3", *[f"a = {n}" for n in range(10, 30)]]
    sent = [kernel.send(code) for code in cells]
    answers = [kernel.answer(message) for message in sent]
    assert [answer.status for answer in answers] == ["ok", "ok"] + ["aborted"] * 20
    assert answers[1].text.startswith("Pausing")
    assert all(answer.states == ["busy", "idle"] for answer in answers)
    assert door.requests[0] == {"op": "pause", "on_loss": "refuse", "losses": [], "kernel_id": kernel.id}
    assert kernel.result(staging)["status"] == "ok"
    reported = [request for request in door.requests if request["op"] == "aborted"]
    assert reported[-1]["messages"] == sent[2:]
    checkpoint = kernel.commit(staging)
    kernel.end()
    kernel.resume(checkpoint)
    assert kernel.value("a, b, c") == "(1, 2, 3)"


def test_the_cell_gets_its_reply_before_the_capture_begins(linked: LiveKernel, door: Door) -> None:
    """An object whose pickling waits for a file shows that nothing but the capture is still to come."""
    go = linked.runtime / "go"
    linked.execute(
        "import os, time\nclass Slow:\n    def __reduce__(self):\n"
        f"        while not os.path.exists({str(go)!r}): time.sleep(0.01)\n        return (int, ())\nslow = Slow()"
    )
    staging = _prepare(linked, door)
    sent = linked.runtime / "sent"
    # The cell goes on once the next one is on its way: on a busy machine it could come after the capture began.
    pausing = linked.send(f"while not os.path.exists({str(sent)!r}): time.sleep(0.01)\n%pause --accept-loss")
    queued = linked.send("1 + 1")
    sent.touch()
    assert linked.answer(pausing).status == "ok"
    assert linked.answer(queued).status == "aborted"
    assert not (staging / "result.json").exists()
    go.touch()
    assert linked.result(staging)["status"] == "ok"


def test_cells_that_come_during_the_capture_are_aborted_before_the_result(linked: LiveKernel, door: Door) -> None:
    go, begun = linked.runtime / "go", linked.runtime / "begun"
    linked.execute(
        "import os, time\nclass Slow:\n    def __reduce__(self):\n"
        f"        open({str(begun)!r}, 'w').close()\n"
        f"        while not os.path.exists({str(go)!r}): time.sleep(0.01)\n        return (int, ())\nslow = Slow()"
    )
    staging = _prepare(linked, door)
    linked.execute("%pause --accept-loss")
    until(begun.exists, "the capture has begun")
    late = linked.send("late = 1")
    go.touch()
    linked.result(staging)
    assert linked.answer(late).status == "aborted"
    assert late in [m for r in door.requests if r["op"] == "aborted" for m in r["messages"]]


def test_losses_are_printed_and_the_pause_refused(linked: LiveKernel, door: Door) -> None:
    linked.execute("gen = (n for n in range(3))")
    door.answers["pause"] = {"ok": False, "code": "would_lose", "message": "Something would be lost."}
    answer = linked.execute("%pause")
    assert answer.text.startswith("Not paused: 1 thing would be lost.")
    assert "gen" in answer.text
    assert "cell 1" in answer.text
    assert "--accept-loss" in answer.text
    assert "<table>" in answer.html
    (asked,) = door.requests  # the server decides: it knows whether a snapshot would keep it
    assert [(asked["on_loss"], [loss["name"] for loss in asked["losses"]])] == [("refuse", ["gen"])]
    assert linked.execute("next(gen)").text == "0"


def test_losses_may_be_accepted(linked: LiveKernel, door: Door) -> None:
    linked.execute("gen = (n for n in range(3)); x = 5")
    staging = _prepare(linked, door)
    assert linked.execute("%pause --accept-loss").text.startswith("Pausing")
    assert door.requests[0]["on_loss"] == "accept"
    assert [loss["name"] for loss in linked.result(staging)["losses"]] == ["gen"]


def test_preview_changes_nothing(linked: LiveKernel, door: Door) -> None:
    linked.execute("import numpy as np; big = np.ones(1 << 20); gen = (n for n in range(3))")
    door.answers["preview"] = {"ok": False, "code": "internal", "message": "It cannot say."}
    answer = linked.execute("%pause --preview")
    assert "8.0 MiB" in answer.text
    assert "1 thing would be lost" in answer.text
    assert "gen" in answer.text
    assert [request["op"] for request in door.requests] == ["preview"]
    door.answers["preview"] = {"ok": True, "losses": []}
    answer = linked.execute("%pause --preview")
    assert "Nothing would be lost: what a checkpoint cannot hold (1 thing) comes back" in answer.text
    assert "gen" not in answer.text


def test_what_the_server_says_is_shown(linked: LiveKernel, door: Door) -> None:
    door.answers["status"] = {"ok": True, "state": {"state": "running", "since": "2026-01-01T00:00:00Z"}, "counts": {}}
    assert linked.execute("%pause --status").text == "This kernel is running.\nSince 2026-01-01T00:00:00Z."
    door.answers["list"] = {
        "ok": True,
        "checkpoints": [{"id": "ab" * 16, "created": "2026-01-01", "path": "a<b>.ipynb", "bytes": 3 << 20}],
    }
    answer = linked.execute("%pause --list")
    assert answer.text.split() == "1 checkpoint, newest first: abababab 2026-01-01 3.0 MiB a<b>.ipynb".split()
    assert "a&lt;b&gt;.ipynb" in answer.html
    door.answers["cancel"] = {"ok": False, "code": "operation_not_found", "message": "There is no pause to cancel."}
    assert linked.execute("%pause --cancel").text == "Nothing was cancelled: There is no pause to cancel."


def test_a_refusal_is_one_sentence_and_holds_nothing(linked: LiveKernel, door: Door) -> None:
    door.answers["pause"] = {"ok": False, "code": "operation_in_progress", "message": "Another pause is under way."}
    assert linked.execute("%pause").text == "Not paused: Another pause is under way."
    assert linked.execute("1 + 1").text == "2"


@pytest.mark.parametrize("way", ["no socket", "nobody listens", "no file", "says nothing", "nonsense"])
def test_a_server_that_cannot_be_reached_loses_nothing(kernel: LiveKernel, way: str, tmp_path: Path) -> None:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    address = f"/tmp/jpt-{os.getpid()}"
    try:
        if way == "no socket":
            kernel.write_kernel_file(link=None)
        elif way == "no file":
            (kernel.runtime / f"jupyter-pause-{kernel.id}.json").unlink()
        else:
            listener.bind(address)
            kernel.write_kernel_file(link=address)
        if way in ("says nothing", "nonsense"):
            listener.listen()
        message = kernel.send("x = 1\n%pause")
        if way in ("says nothing", "nonsense"):
            connection, _ = listener.accept()
            connection.recv(65536)
            if way == "nonsense":
                connection.sendall(b"no json\n")
            connection.close()
        answer = kernel.answer(message)
    finally:
        listener.close()
        Path(address).unlink(missing_ok=True)
    assert answer.status == "ok"
    assert "Nothing was changed" in answer.text
    assert "Traceback" not in answer.text + answer.printed
    assert kernel.execute("x").text == "1"


def test_wrong_options_are_one_sentence(kernel: LiveKernel) -> None:
    for line in ("%pause --no-such", "%pause --list --status", "%pause 'open", "%pause now"):
        answer = kernel.execute(line)
        assert answer.status == "ok"
        assert answer.text.startswith("%pause: "), answer.text
        assert "\n" not in answer.text
        assert answer.printed == ""


def test_a_cell_that_fails_after_pause_is_paused_all_the_same(linked: LiveKernel, door: Door) -> None:
    staging = _prepare(linked, door)
    assert linked.execute("x = 1\n%pause\n1/0").status == "error"
    assert linked.result(staging)["status"] == "ok"


def test_a_pause_cancelled_before_its_cell_ended(linked: LiveKernel, door: Door) -> None:
    staging = _prepare(linked, door)
    cell = f"%pause\nopen({str(staging / 'cancel')!r}, 'w').close()"
    assert linked.execute(cell).status == "ok"
    assert linked.result(staging)["status"] == "cancelled"
    assert linked.execute("1 + 1").text == "2"


def test_cells_queued_behind_several_clients(linked: LiveKernel, door: Door) -> None:
    """A second client of the kernel gets its answers as well."""
    other = BlockingKernelClient(connection_file=linked.manager.connection_file)
    other.load_connection_file()
    other.start_channels(hb=False)
    try:
        staging = _prepare(linked, door)
        linked.send("import time; time.sleep(0.2)\n%pause")
        message = other.execute("x = 'from the other'")
        reply = other.get_shell_msg(timeout=60)
        while reply["parent_header"].get("msg_id") != message:
            reply = other.get_shell_msg(timeout=60)
        assert linked.result(staging)["status"] == "ok"
        assert reply["content"]["status"] in ("aborted", "ok")
        manifest = json.loads((staging / "manifest.json").read_bytes())
        stored = [variable["name"] for variable in manifest["variables"]]
        assert ("x" in stored) == (reply["content"]["status"] == "ok")
    finally:
        other.stop_channels()
