# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""NumPy arrays: views stay views of the same memory, large arrays leave the pickle, small ones own their data.

NumPy is never imported when saving: these functions run only for objects that NumPy made. Recipes refer to functions
of ours, so a checkpoint does not depend on NumPy's private names, which changed between its versions 1 and 2.
"""

from __future__ import annotations

import os
import sys
from pickle import PickleBuffer
from typing import Any, Optional, Tuple

from .context import current

#: Arrays up to this size (bytes) lie inside the pickle and own their memory after loading.
SMALL = 16 * 1024


class Changed(Exception):
    """A file is not as it was; the text says how."""


def module() -> Any:
    """NumPy where the person imported it, else None."""
    return sys.modules.get("numpy")


def is_array(value: Any) -> bool:
    """Whether `value` is exactly an ndarray or a memory-mapped one."""
    np = module()
    return np is not None and type(value) in (np.ndarray, getattr(np, "memmap", None))


def reduce(array: Any) -> Any:
    """The recipe of an ndarray or memmap; NotImplemented where NumPy's own serves better."""
    np = module()
    if _is_private(array):
        return _owner(np, np.asarray(array))
    if is_array(array.base) and array.size and not _is_private(array.base):
        return _view(np, array)
    if type(array) is np.memmap:
        return _memmap(array)
    return _owner(np, array)


def _is_private(array: Any) -> bool:
    """A copy-on-write mapping: what was written to it is not in its file, so it is saved like an array in memory."""
    return getattr(array, "mode", None) == "c"


def _view(np: Any, array: Any) -> Tuple[Any, ...]:
    base = array.base
    offset = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    plain = type(array) is np.ndarray
    return view_of, (base, offset, array.shape, array.strides, array.dtype, bool(array.flags.writeable), plain)


def view_of(base: Any, offset: int, shape: Any, strides: Any, dtype: Any, writeable: bool, plain: bool) -> Any:
    """An array over the memory of `base`, `offset` bytes from its first element (bytes; strides too)."""
    import numpy as np

    array = _raw_view(np, base, offset, shape, strides, dtype)
    if not plain:
        array = array.view(type(base))
    if not writeable:
        array.flags.writeable = False
    return array


def _raw_view(np: Any, base: Any, offset: int, shape: Any, strides: Any, dtype: Any) -> Any:
    if not dtype.hasobject:
        axes = sorted(range(base.ndim), key=lambda axis: -abs(base.strides[axis]))
        straight = base.transpose(axes)
        if straight.flags.c_contiguous:
            return np.ndarray(shape, dtype, buffer=straight, offset=offset, strides=strides)
    from numpy.lib.stride_tricks import as_strided

    # Arrays of Python objects have no buffer. `as_strided` goes from the first element, so that one is found first.
    flat = base.reshape(-1) if base.flags.c_contiguous else base.T.reshape(-1)
    start, rest = divmod(offset, base.itemsize)
    if rest or dtype != base.dtype:
        raise ValueError("a view across elements of an array of objects cannot be made")
    if 0 in shape:
        return np.empty(shape, dtype)
    return as_strided(flat[start:], shape, strides)


def _owner(np: Any, array: Any) -> Any:
    if array.dtype.hasobject:
        if array.dtype != object:
            return NotImplemented
        order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
        items = list(array.reshape(-1, order=order))
        return make_object_array, (array.shape, order), (items, bool(array.flags.writeable)), None, None, fill_objects
    axes = tuple(sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis])))
    straight = array.transpose(axes)
    if not straight.flags.c_contiguous:
        straight, axes = np.ascontiguousarray(array), tuple(range(array.ndim))
    writeable = bool(array.flags.writeable)
    arguments = (straight.shape, array.dtype, axes if axes != tuple(range(array.ndim)) else None, writeable)
    if array.nbytes <= SMALL or array.dtype.itemsize == 0:
        return make_small, (straight.tobytes(), *arguments)
    return make_array, (PickleBuffer(straight.reshape(-1).view("u1")), *arguments)


def make_small(data: bytes, shape: Any, dtype: Any, axes: Optional[Tuple[int, ...]], writeable: bool) -> Any:
    """An array that owns its memory."""
    import numpy as np

    array = np.empty(shape, dtype)
    if array.nbytes:
        array[...] = np.ndarray(shape, dtype, buffer=data)
    return _finish(array, axes, writeable)


def make_array(data: Any, shape: Any, dtype: Any, axes: Optional[Tuple[int, ...]], writeable: bool) -> Any:
    """An array over a buffer of the checkpoint."""
    import numpy as np

    return _finish(np.ndarray(shape, dtype, buffer=data), axes, writeable)


def _finish(array: Any, axes: Optional[Tuple[int, ...]], writeable: bool) -> Any:
    if axes is not None:
        back = [0] * len(axes)
        for position, axis in enumerate(axes):
            back[axis] = position
        array = array.transpose(back)
    if not writeable:
        array.flags.writeable = False
    return array


def make_object_array(shape: Any, order: str) -> Any:
    """An array of Python objects, still empty."""
    import numpy as np

    make: Any = np.empty
    return make(shape, object, order=order)


def fill_objects(array: Any, state: Any) -> None:
    """Put the objects in. They come after the array itself, which they may hold."""
    items, writeable = state
    flat = array.reshape(-1) if array.flags.c_contiguous else array.T.reshape(-1)
    for index, item in enumerate(items):
        flat[index] = item
    if not writeable:
        array.flags.writeable = False


# --- arrays in files -----------------------------------------------------------------------------------------------


def _memmap(array: Any) -> Any:
    path = getattr(array, "filename", None)
    if path is None:
        return _owner(module(), module().asarray(array))
    if array.mode != "r":
        array.flush()
    path = os.path.abspath(os.fspath(path))
    mode = "r+" if array.mode == "w+" else array.mode
    order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    status = os.stat(path)
    saved = (status.st_size, status.st_mtime_ns)
    return open_memmap, (path, array.dtype, mode, int(array.offset), array.shape, order, saved)


def open_memmap(path: str, dtype: Any, mode: str, offset: int, shape: Any, order: str, saved: Any) -> Any:
    """A memory-mapped array over its file again; its tombstone where the file is gone or was changed."""
    import numpy as np

    try:
        status = os.stat(path)
        if (status.st_size, status.st_mtime_ns) != tuple(saved):
            return current().tombstone("numpy.memmap", "its file was changed since the pause")
        opened: Any = np.memmap
        return opened(path, dtype=dtype, mode=mode, offset=offset, shape=shape, order=order)
    except OSError as error:
        return current().tombstone("numpy.memmap", "its file could not be opened: %s" % (error.strerror or error))
