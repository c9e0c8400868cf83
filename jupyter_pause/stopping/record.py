# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What the last stop of a server kept, on disk, so that the next server can say it. Everything here blocks.

The file is written before the first kernel is saved and after each one: were the process killed in the middle, it says
what was not reached.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from jupyter_pause.launch import read_private_json, remove_file, write_private_json
from jupyter_pause.states import StopReport

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from jupyter_pause.states import StoppedKernel


class StopRecord:
    """One file per root directory: several servers may share a checkpoint directory."""

    def __init__(self, checkpoint_dir: Path, root_dir: str) -> None:
        name = hashlib.sha256(root_dir.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        self._path = checkpoint_dir / "stops" / f"{name}.json"

    def write(self, report: StopReport) -> None:
        """Replace the file, durably. Raises OSError."""
        write_private_json(self._path, report.model_dump(mode="json"), sync=True)

    def forget(self) -> None:
        """A stop that nobody needs to be told about."""
        remove_file(self._path)

    def read(self) -> StopReport | None:
        """What the last stop left; None if there is nothing, or nothing that can be understood."""
        content = read_private_json(self._path)
        try:
            return None if content is None else StopReport.model_validate(content)
        except ValueError:
            return None


def corrected(report: StopReport, adopted: Mapping[str, str | None]) -> StopReport:
    """The report, seen from the next server: `adopted` has the kernels it took over, with their checkpoint.

    A kernel that was given up but came back all the same (its process lived on; it saved itself) was not lost.
    """

    def seen_now(kernel: StoppedKernel) -> StoppedKernel:
        if kernel.kernel not in adopted:
            return kernel
        checkpoint = adopted[kernel.kernel] or kernel.checkpoint
        return kernel.model_copy(update={"saved": True, "code": None, "checkpoint": checkpoint})

    return report.model_copy(update={"kernels": [seen_now(kernel) for kernel in report.kernels]})
