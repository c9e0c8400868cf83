# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""S37: the environment of a paused kernel is gone when the server starts anew. It is said, and nothing is dropped."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness import HttpError, ServerProcess


class OwnEnvironment(ServerProcess):
    """A server that finds kernel specifications in an environment below its base."""

    @property
    def prefix(self) -> Path:
        """The environment's folder."""
        return self.base / "envs" / "mine"

    @property
    def env(self) -> dict[str, str]:
        return {**super().env, "JUPYTER_PATH": str(self.prefix / "share" / "jupyter")}

    def install(self) -> None:
        """Make it, with a kernel specification of its own."""
        program = self.prefix / "bin" / "python"
        program.parent.mkdir(parents=True)
        program.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        program.chmod(0o755)
        argv = [str(program), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        specification = {"argv": argv, "display_name": "Mine", "language": "python"}
        folder = self.prefix / "share" / "jupyter" / "kernels" / "mine"
        folder.mkdir(parents=True)
        (folder / "kernel.json").write_text(json.dumps(specification))

    def refused(self, kernel: str) -> dict[str, Any]:
        """The error of a resume that is refused."""
        with pytest.raises(HttpError) as caught:
            self.api("POST", "resume", {"kernel": kernel})
        assert caught.value.status == 409, caught.value.body
        body: dict[str, Any] = caught.value.body
        return body


@pytest.fixture
def server(tmp_path: Path) -> Iterator[OwnEnvironment]:
    made = OwnEnvironment(tmp_path)
    made.install()
    try:
        made.start()
        yield made
    finally:
        made.clean_up()


def paused_with_a_value(server: OwnEnvironment) -> str:
    kernel: str = server.notebook("a.ipynb", "mine")["kernel"]["id"]
    server.run(kernel, "x = 41")
    assert server.pause(kernel)["state"] == "done"
    return kernel


def test_s37_a_missing_kernel_specification_is_named_and_the_session_stays_listed(server: OwnEnvironment) -> None:
    kernel = paused_with_a_value(server)
    server.terminate()
    shutil.rmtree(server.prefix)
    server.start()
    row = server.row(kernel)
    assert row is not None, "still listed"
    assert (row["state"], row["path"], row["name"]) == ("paused", "a.ipynb", "mine")
    assert row["checkpoint"] is not None
    assert (row["reason"]["code"], row["reason"]["params"]) == ("kernelspec_missing", {"name": "mine"}), row
    refused = server.refused(kernel)
    assert (refused["code"], refused["params"]["name"]) == ("kernelspec_missing", "mine"), refused
    assert "Install its environment again" in refused["message"]
    with pytest.raises(HttpError) as caught:
        server.api("POST", "resume", {"checkpoint": row["checkpoint"]["id"]})
    assert caught.value.body["code"] == "kernelspec_missing", "nor is a second session made of its checkpoint"
    assert [r["id"] for r in server.api("GET", "state")["kernels"]] == [kernel]
    log = (server.base / "server.log").read_text()
    assert "kernel specification mine" in log and "Traceback" not in log

    server.install()
    assert server.resume(kernel=kernel)["outcome"] == "restored", "made again, it comes back"
    assert server.run(kernel, "", "x + 1") == "42"
    assert server.row(kernel)["reason"] is None  # type: ignore[index]


def test_s37_a_specification_whose_interpreter_is_gone_is_named_too(server: OwnEnvironment) -> None:
    kernel = paused_with_a_value(server)
    server.terminate()
    shutil.rmtree(server.prefix / "bin")
    server.start()
    refused = server.refused(kernel)
    assert (refused["code"], refused["params"]["name"]) == ("interpreter_missing", "mine"), refused
    shutil.rmtree(server.prefix)
    server.install()
    assert server.resume(kernel=kernel)["outcome"] == "restored"
    assert server.run(kernel, "", "x + 1") == "42"
