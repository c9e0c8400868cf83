# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""NumPy arrays: views stay views of the same memory, large arrays leave the pickle, small ones own their data.

NumPy is never imported when saving: these functions run only for objects that NumPy made. Recipes refer to functions
of ours, so a checkpoint does not depend on NumPy's private names, which changed between its versions 1 and 2.
"""

from __future__ import annotations

import gc
import os
import sys
from pickle import PickleBuffer
from typing import Any, List, Optional, Tuple

from . import regions
from .context import current

#: Arrays up to this size (bytes) lie inside the pickle and own their memory after loading.
SMALL = 16 * 1024


class Changed(Exception):
    """A file is not as it was; the text says how."""


def module() -> Any:
    """NumPy where the person imported it, else None."""
    return sys.modules.get("numpy")


def serves(cls: type) -> bool:
    """Whether `reduce` has a recipe for arrays of this type: NumPy's own, and types that add no rules for saving."""
    np = module()
    if np is None:
        return False
    plain = getattr(np, "ndarray", None)
    if cls in (plain, getattr(np, "memmap", None), _masked(np)):
        return True
    return plain is not None and issubclass(cls, plain) and _has_no_rules(plain, cls)


_RULES = ("__reduce__", "__reduce_ex__", "__setstate__", "__getstate__")


def _has_no_rules(plain: Any, cls: type) -> bool:
    return all(getattr(cls, rule, None) == getattr(plain, rule, None) for rule in _RULES)


def _masked(np: Any) -> Any:
    return getattr(getattr(np, "ma", None), "MaskedArray", None) if "numpy.ma" in sys.modules else None


def is_array(value: Any) -> bool:
    """Whether `value` is exactly an ndarray or a memory-mapped one."""
    np = module()
    return np is not None and type(value) in (np.ndarray, getattr(np, "memmap", None))


def reduce(array: Any) -> Any:
    """The recipe of an ndarray or memmap; NotImplemented where NumPy's own serves better."""
    np = module()
    if type(array) is _masked(np):
        return _masked_array(np, array)
    if type(array) is not np.ndarray and type(array) is not np.memmap:
        return _of_a_kind(np, array)
    if type(array) is np.memmap and not _is_private(array) and not _has_base(np, array):
        return _memmap(array)
    return _memory(np, array)


def _memory(np: Any, array: Any) -> Any:
    """The recipe of an array's memory: a view of another one's, of another object's, or its own."""
    if _is_private(array):
        return _owner(np, np.asarray(array))
    base = array.base
    if _has_base(np, array):
        nearest = _base_of(np, array)
        if _is_straight(nearest):
            return _view(np, array, nearest)
        base = nearest.base
    if type(base) in _foreign() and array.size and not array.dtype.hasobject:
        return _over(np, array, base)
    if _is_tensor(base) and array.size:
        return _over_tensor(array, base)
    return _owner(np, array if type(array) is np.ndarray else array.view(np.ndarray))


def _base_of(np: Any, array: Any) -> Any:
    """The array at the bottom that has the whole memory; None where none of those below can be made again.

    What lies between looks at the same memory, and may leave parts of it out (``a[::2]``).
    """
    found = None
    base = _below(array)
    while isinstance(base, np.ndarray):
        found = base if _is_base(np, base) else found
        base = _below(base)
    return found


def _below(array: Any) -> Any:
    """What an array's memory belongs to; ``as_strided`` puts an object of NumPy's between."""
    base = array.base
    return getattr(base, "base", None) if type(base).__name__ == "DummyArray" else base


def _is_straight(base: Any) -> bool:
    """Whether the array's elements fill its memory without a gap, in whatever order of axes."""
    return bool(base.transpose(_axes_by_stride(base)).flags.c_contiguous)


def _axes_by_stride(array: Any) -> Tuple[int, ...]:
    """The axes in the order in which the array lies in memory, outermost first."""
    return tuple(sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis])))


def _has_base(np: Any, array: Any) -> bool:
    base = _base_of(np, array)
    return isinstance(base, np.ndarray) and bool(array.size) and not _is_private(base)


def _is_base(np: Any, base: Any) -> bool:
    """Whether a view of it can be made again as one."""
    return isinstance(base, np.ndarray) and (is_array(base) or _has_no_rules(np.ndarray, type(base)))


def _of_a_kind(np: Any, array: Any) -> Any:
    """An array of a type that derives from NumPy's, with its attributes."""
    recipe = _memory(np, array)
    if recipe is NotImplemented:
        return recipe
    state = (dict(getattr(array, "__dict__", {})), recipe[2] if len(recipe) > 2 else None)
    return own_kind, (type(array), recipe[0], recipe[1]), state, None, None, fill_kind


def own_kind(cls: Any, make: Any, arguments: Any) -> Any:
    """An array of a type of its own, over memory that `make` gives."""
    return make(*arguments).view(cls)


def fill_kind(array: Any, state: Any) -> None:
    """Attributes, and objects where it holds any."""
    import numpy as np

    names, objects = state
    set_names(array, names)
    if objects is not None:
        fill_objects(array.view(np.ndarray), objects)


def set_names(array: Any, names: Any) -> None:
    """Attributes that such a type keeps in its objects, past its own methods."""
    getattr(array, "__dict__", {}).update(names)


# --- masked arrays -------------------------------------------------------------------------------------------------


def _masked_array(np: Any, array: Any) -> Any:
    recipe = _memory(np, array) if _has_no_rules(np.ndarray, array._baseclass) else NotImplemented
    if recipe is NotImplemented or len(recipe) > 2:
        return NotImplemented
    state = {name: item for name, item in vars(array).items() if name not in ("_mask", "_sharedmask")}
    mask = None if array._mask is np.ma.nomask else array._mask
    return masked_over, (recipe[0], recipe[1], mask), state, None, None, set_names


def masked_over(make: Any, arguments: Any, mask: Any) -> Any:
    """A masked array over memory that `make` gives."""
    import numpy as np

    return np.ma.MaskedArray(make(*arguments), mask=np.ma.nomask if mask is None else mask, copy=False)


# --- memory of other objects ---------------------------------------------------------------------------------------


def _foreign() -> Tuple[type, ...]:
    return (memoryview, bytes)


def _over_tensor(array: Any, tensor: Any) -> Any:
    """What ``tensor.numpy()`` gave: it looks at the tensor's memory."""
    base = tensor.detach()
    offset = array.__array_interface__["data"][0] - base.data_ptr()
    place = (offset, array.shape, array.strides, array.dtype, bool(array.flags.writeable))
    return over_tensor, (base, *place)


def over_tensor(tensor: Any, offset: int, shape: Any, strides: Any, dtype: Any, writeable: bool) -> Any:
    """An array over the memory of a tensor."""
    return view_of(tensor.numpy(), offset, shape, strides, dtype, writeable, True)


def _is_tensor(base: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and type(base) is getattr(torch, "Tensor", None) and base.device.type == "cpu"


def _over(np: Any, array: Any, base: Any) -> Any:
    """An array over the memory of an object that is no array: ``numpy.frombuffer``, ``numpy.asarray(memoryview)``."""
    owner = base.obj if type(base) is memoryview else base
    whole = memoryview(owner)
    start = array.__array_interface__["data"][0] - regions.address_of(whole)
    if not whole.c_contiguous or type(owner) not in _owners() or not 0 <= start < whole.nbytes:
        return _owner(np, array.view(np.ndarray))
    arguments = (owner, start, array.shape, array.strides, array.dtype, bool(array.flags.writeable))
    return (over, arguments)


def _owners() -> Tuple[Any, ...]:
    kinds: List[Any] = [bytes, bytearray]
    for name, kind in (("array", "array"), ("mmap", "mmap")):
        found = getattr(sys.modules.get(name), kind, None)
        kinds += [found] if isinstance(found, type) else []
    return tuple(kinds)


def over(owner: Any, start: int, shape: Any, strides: Any, dtype: Any, writeable: bool) -> Any:
    """An array over the memory of `owner`, `start` bytes from its beginning."""
    import numpy as np

    array: Any = np.ndarray(shape, dtype, buffer=memoryview(owner).cast("B"), offset=start, strides=strides)
    if not writeable:
        array.flags.writeable = False
    return array


# --- single values of NumPy's --------------------------------------------------------------------------------------


class _Nan:
    """Stands for ``numpy.nan`` itself: a number is pickled by its value, and "is" would be false afterwards."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        return the_nan, ()


def the_nan() -> Any:
    """NumPy's own."""
    import numpy as np

    return np.nan


def named(value: Any) -> Any:
    """What to pickle for the value of a variable."""
    return _Nan() if type(value) is float and value is getattr(module(), "nan", None) else value


def _with_names(np: Any, items: Any) -> Any:
    nan = np.nan
    return [_Nan() if item is nan else item for item in items] if any(item is nan for item in items) else items


def reduce_ufunc(ufunc: Any) -> Any:
    """The recipe of what ``numpy.frompyfunc`` gave; NotImplemented where its function is not known."""
    inside = [item for item in gc.get_referents(ufunc) if callable(item)]
    if len(inside) != 1 or type(inside[0]).__module__ == "numpy":
        return NotImplemented
    return make_ufunc, (inside[0], ufunc.nin, ufunc.nout, ufunc.identity)


def make_ufunc(function: Any, inputs: int, outputs: int, identity: Any) -> Any:
    """A universal function of a Python function."""
    import numpy as np

    return np.frompyfunc(function, inputs, outputs, identity=identity)


def _is_private(array: Any) -> bool:
    """A copy-on-write mapping: what was written to it is not in its file, so it is saved like an array in memory."""
    return getattr(array, "mode", None) == "c"


def _view(np: Any, array: Any, base: Any) -> Tuple[Any, ...]:
    offset = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    plain = not isinstance(array, np.memmap)
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
    straight = base.transpose(_axes_by_stride(base))
    if not straight.flags.c_contiguous:
        raise ValueError("the memory below this view has gaps")
    if not dtype.hasobject:
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
        items = _with_names(np, list(array.reshape(-1, order=order)))
        return make_object_array, (array.shape, order), (items, bool(array.flags.writeable)), None, None, fill_objects
    axes = _axes_by_stride(array)
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
        if current().describing:
            mode = "c"  # what is written then stays in that process
        return opened(path, dtype=dtype, mode=mode, offset=offset, shape=shape, order=order)
    except OSError as error:
        return current().tombstone("numpy.memmap", "its file could not be opened: %s" % (error.strerror or error))
