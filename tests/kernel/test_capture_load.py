# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Capture by message, load at start: what a notebook sees before and after."""

from __future__ import annotations

import ast
import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from jupyter_pause.app import PauseApp
from jupyter_pause.kernel.interpreter import DEFAULT_SKIP_ENV

from .livekernel import LiveKernel, until


def test_state_survives_and_the_counter_goes_on(kernel_of_any_python: LiveKernel) -> None:
    kernel = kernel_of_any_python
    kernel.execute(
        "import numpy as np, uuid\ntoken = uuid.uuid4().hex\nbig = np.arange(300_000)\nshared = [1]\nagain = shared"
    )
    kernel.execute(
        "class Point:\n    def __init__(self, x): self.x = x\n    def double(self): return 2 * self.x\np = Point(21)"
    )
    kernel.execute("def add(a, b=2): return a + b + offset\noffset = 100")
    kernel.execute("token")
    token, pid, count = kernel.value("token"), kernel.pid, int(kernel.value("get_ipython().execution_count"))
    result = kernel.resume(kernel.save())
    assert result["status"] == "ok", result
    assert result["outcome"] == "restored", result
    assert result["losses"] == []
    assert result["execution_count"] == count
    assert result["pid"] == kernel.pid != pid
    assert kernel.value("token") == token
    assert kernel.value("int(big.sum()), p.double(), add(1), type(p) is Point, again is shared") == repr(
        (sum(range(300_000)), 42, 103, True, True)
    )
    answer = kernel.execute("shared.append(2); again")
    assert answer.text == "[1, 2]"
    assert answer.count == count


def test_history_is_that_of_the_saved_kernel(kernel_of_any_python: LiveKernel) -> None:
    kernel = kernel_of_any_python
    kernel.execute("a = 'first'")
    kernel.execute("%time b = [1, 2]")
    kernel.execute("b")
    kernel.execute("a + '!'")
    before = kernel.value("(In[:], dict(Out), _, __, _3, _i1, _i2, get_ipython().execution_count)")
    kernel.resume(kernel.save())
    assert kernel.value("(In[:], dict(Out), _, __, _3, _i1, _i2, get_ipython().execution_count)") == before
    assert kernel.value("Out[3] is b, In is _ih, Out is _oh, 'In' in get_ipython().user_ns_hidden") == repr((True,) * 4)
    answer = kernel.execute("_i, _ii, len(In), In[-1]")
    assert answer.text == repr(("a + '!'", "b", 6, "_i, _ii, len(In), In[-1]"))
    assert answer.count == 5
    assert kernel.execute("%history -n 1-5").printed.splitlines()[0].strip() == "1: a = 'first'"
    assert kernel.value("Out[5] == _, _5 == _") == "(True, True)"
    assert "__jupyter_pause" not in kernel.value("sorted(globals())")


def test_an_underscore_of_ones_own_is_kept(kernel: LiveKernel) -> None:
    kernel.execute("5")
    kernel.execute("_ = 'mine'")
    kernel.resume(kernel.save())
    assert kernel.value("_") == "'mine'"
    kernel.execute("7")
    assert kernel.value("_") == "'mine'"


def test_a_cell_sent_before_the_kernel_is_up_sees_the_restored_variables(kernel_of_any_python: LiveKernel) -> None:
    kernel = kernel_of_any_python
    kernel.execute("value = 'restored'")
    checkpoint = kernel.save()
    path = kernel.write_load_file(checkpoint)
    kernel.start(wait=False)
    answer = kernel.execute("value")
    assert answer.text == "'restored'"
    assert json.loads(path.read_bytes())["status"] == "ok"
    assert not kernel.load_file.exists()


def test_a_restart_does_not_load_again(kernel: LiveKernel) -> None:
    kernel.execute("value = 1")
    kernel.resume(kernel.save())
    kernel.end()
    kernel.start()
    assert kernel.value("'value' in globals(), get_ipython().execution_count") == "(False, 1)"


def test_directory_path_environment_and_extensions(kernel_of_any_python: LiveKernel, tmp_path: Path) -> None:
    kernel = kernel_of_any_python
    (tmp_path / "front").mkdir()
    (tmp_path / "end").mkdir()
    (tmp_path / "front" / "own_module.py").write_text("class Thing:\n    value = 5\n")
    kernel._env["GOES_AWAY"] = "1"
    kernel.end()
    kernel.start()
    kernel.execute(
        f"import os, sys\nos.chdir({str(tmp_path / 'end')!r})\nsys.path.insert(0, {str(tmp_path / 'front')!r})\n"
        f"sys.path.append({str(tmp_path / 'end')!r})\nos.environ['SOME_SETTING'] = 'on'\ndel os.environ['GOES_AWAY']\n"
        "from own_module import Thing\nthing = Thing()"
    )
    kernel.execute("%load_ext autoreload")
    before = kernel.value("(os.getcwd(), sys.path)")
    result = kernel.resume(kernel.save())
    assert result["outcome"] == "restored", result
    assert kernel.value("(os.getcwd(), sys.path)") == before
    assert kernel.value("thing.value, os.environ['SOME_SETTING'], 'GOES_AWAY' in os.environ") == "(5, 'on', False)"
    assert "autoreload" in kernel.value("get_ipython().extension_manager.loaded")


def test_a_directory_that_is_gone_is_said(kernel: LiveKernel, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    kernel.execute(f"import os; os.chdir({str(tmp_path / 'gone')!r}); x = 1")
    checkpoint = kernel.save()
    (tmp_path / "gone").rmdir()
    result = kernel.resume(checkpoint)
    assert result["outcome"] == "partial"
    assert [loss["name"] for loss in result["losses"]] == ["current directory"]
    assert kernel.value("x") == "1"


def test_a_value_under_a_key_that_is_no_name_is_a_named_loss(
    kernel_of_any_python: LiveKernel,
) -> None:
    kernel = kernel_of_any_python
    kernel.execute("globals()[5] = 'five'; kept = [1, 2]")
    told = kernel.control(op="inventory", wait=60)
    assert [loss["path"] for loss in told["losses"]] == ["globals()[5]"]
    checkpoint = kernel.save()
    result = kernel.resume(checkpoint)
    assert kernel.value("kept") == "[1, 2]"
    assert result["outcome"] == "partial" and [loss["name"] for loss in result["losses"]] == ["globals()[5]"]


def test_names_and_values_that_hold_credentials_are_not_stored(new_kernel: Callable[..., LiveKernel]) -> None:
    kernel = new_kernel()
    kernel.write_kernel_file()
    kernel.start()
    secret = ["AWS_ACCESS_KEY_ID", "OPENAI_APIKEY", "DB_PWD", "MY_PAT", "SSH_KEY_DATA", "BASIC_AUTH"]
    kernel.execute(f"import os\nfor name in {secret}: os.environ[name] = 'hush'")
    kernel.execute("os.environ['DATABASE_URL'] = 'postgres://ann:hush@db.example/x'")
    kernel.execute("os.environ['PLAIN_URL'] = 'https://example.org:8080/a@b'; os.environ['KEYBOARD'] = 'de'")
    env = kernel.manifest(kernel.save())["interpreter"]["env"]
    assert list(DEFAULT_SKIP_ENV) == PauseApp(checkpoint_dir=str(kernel.root)).skip_env
    assert sorted(item["name"] for item in env["not_stored"]) == sorted([*secret, "DATABASE_URL"])
    assert env["set"] == {"KEYBOARD": "de", "PLAIN_URL": "https://example.org:8080/a@b"}


def test_s25_secrets_of_the_environment_are_neither_stored_nor_brought_back(
    new_kernel: Callable[..., LiveKernel],
) -> None:
    kernel = new_kernel(env={"JUPYTERHUB_API_TOKEN": "old-hub-token", "PLAIN": "1"})
    kernel.write_kernel_file()
    kernel.start()
    kernel.execute("import os")
    kernel.execute("os.environ['MY_SERVICE_TOKEN'] = ''.join(['very', '-', 'secret'])")
    kernel.execute("%env DB_SECRET=")
    kernel.execute("os.environ['DB_SECRET'] = ''.join(['hid', 'den'])")
    checkpoint = kernel.save()
    folder = kernel.root / "checkpoints" / checkpoint
    assert kernel.manifest(checkpoint)["interpreter"]["env"]["not_stored"] == [
        {"name": "DB_SECRET", "cell": 4},
        {"name": "MY_SERVICE_TOKEN", "cell": 2},
    ]
    stored = json.dumps(kernel.manifest(checkpoint)["interpreter"])
    assert "very-secret" not in stored
    assert "hidden" not in stored
    assert all(b"old-hub-token" not in path.read_bytes() for path in folder.iterdir())
    kernel._env["JUPYTERHUB_API_TOKEN"] = "new-hub-token"
    kernel.resume(checkpoint)
    assert (
        kernel.value("os.environ['JUPYTERHUB_API_TOKEN'], os.environ.get('MY_SERVICE_TOKEN')")
        == "('new-hub-token', None)"
    )


def test_queued_cells_are_aborted_and_run_after_an_unhold(kernel_of_any_python: LiveKernel) -> None:
    kernel = kernel_of_any_python
    staging = kernel.new_staging()
    first = kernel.send("x = 1")
    kernel.request_capture(staging)
    queued = [kernel.send(f"x = {number}") for number in range(2, 12)]
    assert kernel.answer(first).status == "ok"
    assert [kernel.answer(message).status for message in queued] == ["aborted"] * 10
    assert kernel.result(staging)["status"] == "ok"
    assert kernel.execute("x = 99").status == "aborted"
    kernel.control(op="unhold")
    assert kernel.execute("x").text == "1"


def test_cancel_before_it_began(kernel: LiveKernel) -> None:
    cell = kernel.begin("import time\nwhile True: time.sleep(0.01)")
    staging = kernel.new_staging()
    kernel.request_capture(staging)
    (staging / "cancel").touch()
    kernel.interrupt(cell)
    assert kernel.result(staging)["status"] == "cancelled"
    assert not (staging / "manifest.json").exists()
    assert kernel.execute("1 + 1").text == "2"


def test_cancel_while_writing(kernel: LiveKernel) -> None:
    kernel.execute("import numpy as np; big = [np.random.default_rng(i).bytes(4 << 20) for i in range(100)]")
    staging = kernel.new_staging()
    kernel.request_capture(staging)
    until((staging / "progress.json").exists, "progress")
    (staging / "cancel").touch()
    result = kernel.result(staging)
    assert result["status"] in ("cancelled", "ok"), result
    if result["status"] == "cancelled":
        assert not (staging / "pack.bin").exists()
        assert not (staging / "frames.bin").exists()
        assert kernel.execute("len(big)").text == "100"


def test_progress_is_told(kernel: LiveKernel) -> None:
    kernel.execute("import numpy as np; big = [np.arange(1 << 20) + n for n in range(40)]")
    staging = kernel.new_staging()
    kernel.request_capture(staging)
    seen = until(lambda: (staging / "progress.json").exists() and (staging / "progress.json").read_bytes(), "progress")
    progress = json.loads(seen)
    assert progress["phase"] in ("capturing", "writing", "syncing")
    assert kernel.result(staging)["bytes"] > 300_000_000
    assert all(path.stat().st_mode & 0o077 == 0 for path in staging.iterdir())


def test_losses_are_named_with_their_cell(kernel: LiveKernel) -> None:
    kernel.execute("keep = 1")
    kernel.execute("gen = (n for n in range(3))")
    kernel.execute("cfg = {'g': gen, 'ok': 1}")
    staging, result = kernel.capture()
    assert result["status"] == "ok"
    cells = {loss["name"]: loss["cell"] for loss in result["losses"]}
    assert cells["gen"] == 2
    checkpoint = kernel.commit(staging)
    stored = {loss["name"]: loss["cell"] for loss in kernel.manifest(checkpoint)["losses"]}
    assert stored["gen"] == 2
    kernel.end()
    loaded = kernel.resume(checkpoint)
    assert loaded["outcome"] == "partial"
    answer = kernel.execute("next(gen)")
    assert answer.status == "error"
    assert "cell 2" in answer.error


def _damage(path: Path, old: bytes | None = None) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("name", ["manifest.json", "manifest.sig", "frames.bin"])
def test_s29_a_damaged_checkpoint_leaves_a_clean_kernel_that_says_failed(kernel: LiveKernel, name: str) -> None:
    kernel.execute("x = {'a': [1, 2, 3]}")
    kernel.execute("import os; os.environ['CHANGED'] = '1'; os.chdir('/')")
    checkpoint = kernel.save()
    _damage(kernel.root / "checkpoints" / checkpoint / name)
    result = kernel.resume(checkpoint)
    assert (result["status"], result["outcome"]) == ("failed", "fresh"), result
    assert result["code"]
    assert result["message"]
    assert kernel.value("'x' in globals(), get_ipython().execution_count") == "(False, 1)"
    kernel.execute("import os")
    assert kernel.value("'CHANGED' in os.environ, os.getcwd() == '/'") == "(False, False)"


def test_s49_a_replaced_payload_is_never_unpickled(kernel: LiveKernel, tmp_path: Path) -> None:
    kernel.execute("x = 1")
    checkpoint = kernel.save()
    marker = tmp_path / "marker"

    class Bomb:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return open, (str(marker), "w")  # type: ignore[return-value]

    (kernel.root / "checkpoints" / checkpoint / "frames.bin").write_bytes(pickle.dumps(Bomb()))
    result = kernel.resume(checkpoint)
    assert (result["status"], result["outcome"]) == ("failed", "fresh")
    assert not marker.exists()


def test_a_checkpoint_that_is_not_there(new_kernel: Callable[..., LiveKernel]) -> None:
    kernel = new_kernel()
    kernel.write_kernel_file()
    result = kernel.resume("0" * 32)
    assert (result["status"], result["outcome"]) == ("failed", "fresh")
    assert kernel.execute("1 + 1").text == "2"


@pytest.mark.parametrize("line", ["this is no JSON", "[]", '{"version": 1}', '{"checkpoint": 5, "result": 7}'])
def test_a_broken_load_file_does_not_stop_the_kernel(new_kernel: Callable[..., LiveKernel], line: str) -> None:
    kernel = new_kernel()
    kernel.write_kernel_file()
    kernel._write(kernel.load_file, line.encode())
    kernel.start()
    assert kernel.execute("1 + 1").text == "2"
    assert not kernel.load_file.exists()


def test_code_that_runs_while_loading_cannot_end_the_kernel_or_leave_a_half_filled_namespace(
    kernel: LiveKernel,
) -> None:
    kernel.execute("before = 1")
    kernel.execute(
        "import sys\nclass Leaves:\n    def __getstate__(self): return {'a': 1}\n"
        "    def __setstate__(self, state): sys.exit(3)\nz_last = Leaves()"
    )
    staging, result = kernel.capture()
    assert result["status"] == "ok"
    checkpoint = kernel.commit(staging)
    kernel.end()
    loaded = kernel.resume(checkpoint)
    assert kernel.execute("1 + 1").text == "2"
    if loaded["status"] == "failed":
        assert kernel.value("'before' in globals()") == "False"
    else:
        assert loaded["outcome"] == "partial"
        assert kernel.value("before") == "1"


def test_start_up_files_run_again_and_the_checkpoint_wins(
    new_kernel: Callable[..., LiveKernel], tmp_path: Path
) -> None:
    startup = tmp_path / "run" / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "00.py").write_text(
        "import threading\nsettings = {'a': 1}\nhelper = (n for n in range(9))\ncounter = [0]\n"
    )
    kernel = new_kernel()
    kernel.write_kernel_file()
    kernel.start()
    kernel.execute("settings['b'] = 2\ncounter.append(1)")
    staging, result = kernel.capture()
    assert result["losses"] == [], "a start-up file makes its generator again"
    checkpoint = kernel.commit(staging)
    kernel.end()
    assert kernel.resume(checkpoint)["outcome"] == "restored"
    assert kernel.value("settings, counter, next(helper)") == "({'a': 1, 'b': 2}, [0, 1], 0)"


def test_a_second_capture_while_one_runs_is_refused(kernel: LiveKernel) -> None:
    kernel.execute("import numpy as np; big = [np.arange(1 << 20) + n for n in range(40)]")
    first, second = kernel.new_staging(), kernel.new_staging()
    kernel.request_capture(first)
    kernel.request_capture(second)
    results = {kernel.result(first)["status"], kernel.result(second).get("code")}
    assert results == {"ok", "operation_in_progress"}


def test_a_full_disk_is_said_and_the_kernel_runs_on(kernel: LiveKernel) -> None:
    """A limit on file sizes stands for the full disk: the writes fail in the same place."""
    kernel.execute(
        "import numpy as np, resource, signal\nbig = np.ones(1 << 21)\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nresource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, -1))"
    )
    staging, result = kernel.capture()
    assert result["status"] == "failed"
    assert result["code"] in ("no_space", "unwritable")
    assert not (staging / "manifest.json").exists()
    assert kernel.execute("int(big.sum())").text == str(1 << 21)


def test_the_reply_of_the_request_is_a_courtesy_and_a_bad_one_is_refused(kernel: LiveKernel) -> None:
    message = kernel.client.session.msg("jupyter_pause_request", {"op": "capture", "staging": "/no/such/folder"})
    kernel.client.shell_channel.send(message)
    until(lambda: kernel.replied(message["header"]["msg_id"]), "the reply")
    assert kernel.execute("1 + 1").text == "2"


def test_a_kernel_killed_while_saving_leaves_no_result(kernel: LiveKernel) -> None:
    kernel.execute("import numpy as np; big = [np.random.default_rng(i).bytes(4 << 20) for i in range(100)]")
    staging = kernel.new_staging()
    kernel.request_capture(staging)
    until((staging / "progress.json").exists, "progress")
    os.kill(kernel.pid, 9)
    until(lambda: not kernel.running, "the process is gone")
    if (staging / "result.json").exists():
        assert json.loads((staging / "result.json").read_bytes())["status"] == "ok"
    else:
        assert not (staging / "manifest.sig").exists()


def test_threads_of_the_notebook_are_losses(kernel: LiveKernel) -> None:
    kernel.execute(
        "import threading\ndef work(): threading.Event().wait()\n"
        "threading.Thread(target=work, name='collector', daemon=True).start()"
    )
    _, result = kernel.capture()
    assert [loss["name"] for loss in result["losses"]] == ["collector"]


def test_two_checkpoints_share_nothing_but_the_kernel(kernel: LiveKernel) -> None:
    kernel.execute("x = 1")
    staging, _ = kernel.capture()
    first = kernel.commit(staging)
    kernel.control(op="unhold")
    kernel.execute("x = 2")
    staging, _ = kernel.capture()
    second = kernel.commit(staging)
    kernel.end()
    kernel.resume(first)
    assert kernel.value("x") == "1"
    kernel.end()
    kernel.resume(second)
    assert kernel.value("x") == "2"
    assert ast.literal_eval(kernel.value("len(In)")) >= 3
