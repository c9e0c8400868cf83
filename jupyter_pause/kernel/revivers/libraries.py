# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Archives of arrays, trees of elements and HDF5 files; no library is imported to save."""

from __future__ import annotations

import importlib
import sys
from typing import Any, Optional, Tuple

from ..context import reaches_out
from .base import CannotRevive, Help, Reviver
from .streams import file_behind, unchanged

# --- NumPy ---------------------------------------------------------------------------------------------------------


class _NpzFile(Reviver):
    types = ("numpy.lib._npyio_impl.NpzFile", "numpy.lib.npyio.NpzFile")

    def describe(self, value: Any) -> Optional[str]:
        if value.zip is None:
            raise CannotRevive("it is closed")
        file_behind(value.zip.filename)
        return "opened again"

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        self.describe(value)
        path, saved = file_behind(value.zip.filename)
        return open_npz, (path, bool(value.allow_pickle), saved)


@reaches_out
def open_npz(path: str, allow_pickle: bool, saved: Any) -> Any:
    """The archive of arrays again."""
    import numpy as np

    changed = unchanged("NpzFile", path, saved)
    return np.load(path, allow_pickle=allow_pickle) if changed is None else changed


class _FloatInfo(Reviver):
    types = ("numpy.finfo",)
    rebuilt = False

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        return float_info, (value.dtype,)


def float_info(dtype: Any) -> Any:
    """NumPy keeps one for each type."""
    import numpy as np

    return np.finfo(dtype)


# --- trees and files of data ---------------------------------------------------------------------------------------


class _Element(Reviver):
    types = ("lxml.etree._Element", "lxml.html.HtmlElement")

    def describe(self, value: Any) -> Optional[str]:
        return "read again from its text"

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        etree = sys.modules["lxml.etree"]
        tree = value.getroottree()
        root = tree.getroot()
        if value is not root:
            return inside_element, (root, tree.getelementpath(value))
        html = type(value).__module__ == "lxml.html"
        return make_element, (etree.tostring(value, with_tail=False, encoding="utf-8"), html)


def make_element(text: bytes, html: bool) -> Any:
    """The root of a tree."""
    if html:
        return importlib.import_module("lxml.html").fromstring(text.decode())
    return importlib.import_module("lxml.etree").fromstring(text)


def inside_element(root: Any, path: str) -> Any:
    """An element of the same tree."""
    return root.find(path)


class _H5File(Reviver):
    types = ("h5py._hl.files.File",)

    def describe(self, value: Any) -> Optional[str]:
        if not value:
            raise CannotRevive("it is closed")
        return "opened again"

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        self.describe(value)
        if value.mode != "r":
            value.flush()
        path, saved = file_behind(value.filename)
        return open_h5, (path, value.mode, saved)


class _H5Part(Reviver):
    types = ("h5py._hl.dataset.Dataset", "h5py._hl.group.Group")

    def describe(self, value: Any) -> Optional[str]:
        if not value:
            raise CannotRevive("its file is closed")
        return "opened again"

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        self.describe(value)
        return inside_h5, (value.file, value.name)


@reaches_out
def open_h5(path: str, mode: str, saved: Any) -> Any:
    """The file again; one that was read only must not have changed."""
    changed = unchanged("h5py.File", path, saved) if mode == "r" else None
    return importlib.import_module("h5py").File(path, mode) if changed is None else changed


@reaches_out
def inside_h5(opened: Any, name: str) -> Any:
    """A data set or group of a file."""
    return opened[name]
