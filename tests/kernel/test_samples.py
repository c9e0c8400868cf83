# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What the server compares before and after a snapshot, and the live server's variables, in real kernels."""

from __future__ import annotations

from .livekernel import LiveKernel


def test_the_largest_variables_have_digests_that_notice_a_change(kernel_of_any_python: LiveKernel) -> None:
    kernel = kernel_of_any_python
    kernel.execute("import math, numpy as np; big = np.ones(1 << 20); text = 'x' * 5000; n = 3\ndef f(): pass")
    first = kernel.control(op="sample", count=2)
    assert [(item["name"], item["bytes"] >= 5000) for item in first["samples"]] == [("big", True), ("text", True)]
    assert first["busy"] is False
    assert kernel.control(op="sample", count=2)["samples"] == first["samples"]
    kernel.execute("big[12345] = 2.0; big[0] = 7.0")
    again = {item["name"]: item["digest"] for item in kernel.control(op="sample", names=["big", "text"])["samples"]}
    before = {item["name"]: item["digest"] for item in first["samples"]}
    assert again["big"] != before["big"] and again["text"] == before["text"]
    kernel.execute("del text")
    assert [item["name"] for item in kernel.control(op="sample", names=["text", "big"])["samples"]] == ["big"]


def test_samples_are_taken_while_a_cell_runs(kernel: LiveKernel) -> None:
    kernel.execute("import time; values = list(range(1000))")
    message = kernel.begin("while True: time.sleep(0.01)")
    answer = kernel.control(op="sample", count=5)
    assert answer["busy"] is True and "values" in {item["name"] for item in answer["samples"]}
    kernel.interrupt(message)


def test_s25_the_live_servers_variables_are_taken_over_and_only_named(kernel: LiveKernel) -> None:
    kernel.execute(
        "import os; os.environ.update(JUPYTERHUB_API_TOKEN='old', JUPYTERHUB_HOST='same', HOME_TOKEN='mine')"
    )
    live = {"JUPYTERHUB_API_TOKEN": "new-secret", "JUPYTERHUB_HOST": "same", "HOME_TOKEN": "x", "JUPYTERHUB_NEW": "y"}
    answer = kernel.control(op="renew_env", env=live)
    assert answer["renewed"] == ["JUPYTERHUB_API_TOKEN"] and "new-secret" not in str(answer)
    assert kernel.value("os.environ['JUPYTERHUB_API_TOKEN'], os.environ['HOME_TOKEN']") == "('new-secret', 'mine')"
    assert kernel.value("'JUPYTERHUB_NEW' in os.environ") == "False"
