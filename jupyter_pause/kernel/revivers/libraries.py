# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Objects of libraries whose own pickling fails, lies or gives something dead; no library is imported to save."""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from typing import Any, Dict, Optional, Tuple

from ..context import current, reaches_out
from ..definitions import new_by_base
from ..generated import put_values_inside
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


# --- security and connections --------------------------------------------------------------------------------------


class _SecurityContext(Reviver):
    types = ("ssl.SSLContext",)

    def describe(self, value: Any) -> Optional[str]:
        return "it trusts the same authorities; a certificate of one's own has to be loaded again"

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        settings = {name: int(getattr(value, name)) for name in _SECURITY}
        trusted = b"".join(value.get_ca_certs(binary_form=True))
        return make_security_context, (int(value.protocol), settings, trusted)


#: In this order: a context that checks names must verify.
_SECURITY = ("verify_flags", "options", "minimum_version", "maximum_version", "verify_mode", "check_hostname")


def make_security_context(protocol: int, settings: Dict[str, int], trusted: bytes) -> Any:
    """A context with the same settings that trusts the same authorities (certificates in DER)."""
    import ssl

    made = ssl.SSLContext(ssl._SSLMethod(protocol))
    made.check_hostname = False
    kinds = (ssl.VerifyFlags, ssl.Options, ssl.TLSVersion, ssl.TLSVersion, ssl.VerifyMode, bool)
    for (name, value), kind in zip(settings.items(), kinds):
        setattr(made, name, kind(value))
    if trusted:
        made.load_verify_locations(cadata=trusted)
    return made


class _ConnectionPool(Reviver):
    types = ("httpcore._sync.connection_pool.ConnectionPool", "httpcore._async.connection_pool.AsyncConnectionPool")
    derived = True

    def describe(self, value: Any) -> Optional[str]:
        return "its connections are opened anew"

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        inside = dict(vars(value), _connections=[], _requests=[])
        return new_by_base, (type(value),), inside, None, None, put_values_inside


# --- duckdb --------------------------------------------------------------------------------------------------------


class _DuckDb(Reviver):
    types = ("_duckdb.DuckDBPyConnection", "duckdb.duckdb.DuckDBPyConnection", "duckdb.DuckDBPyConnection")

    def describe(self, value: Any) -> Optional[str]:
        path = _duckdb_path(value)
        return "connected again" if path else "made again with the same tables and views"

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        path = _duckdb_path(value)
        if path:
            value.execute("CHECKPOINT")
            return open_duckdb, (os.path.abspath(path),)
        copy = os.path.join(help.folder, "duckdb.tmp")
        name = value.execute("SELECT current_database()").fetchone()[0]
        try:
            value.execute("ATTACH '%s' AS jupyter_pause_copy" % copy.replace("'", "''"))
            try:
                value.execute('COPY FROM DATABASE "%s" TO jupyter_pause_copy' % name)
            finally:
                value.execute("DETACH jupyter_pause_copy")
            with open(copy, "rb") as stream:
                return make_duckdb, (stream.read(),)
        finally:
            for left in (copy, copy + ".wal"):
                if os.path.exists(left):
                    os.unlink(left)


def _duckdb_path(value: Any) -> Optional[str]:
    """The file of the connection's database; None for one in memory. Raises CannotRevive."""
    try:
        rows = value.execute("SELECT path FROM duckdb_databases() WHERE database_name = current_database()").fetchall()
    except Exception as error:
        raise CannotRevive("its database cannot be read (%s)" % error) from None
    return rows[0][0] if rows else None


@reaches_out
def open_duckdb(path: str) -> Any:
    """A connection to the database file; its tombstone where the file is gone (none is created)."""
    if not os.path.isfile(path):
        return current().tombstone("duckdb connection", "its database file is not there any more")
    return importlib.import_module("duckdb").connect(path)


def make_duckdb(data: bytes) -> Any:
    """A database in memory with the same content."""
    made = importlib.import_module("duckdb").connect()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "copy.duckdb")
        with open(path, "wb") as stream:
            stream.write(data)
        made.execute("ATTACH '%s' AS jupyter_pause_copy (READ_ONLY)" % path.replace("'", "''"))
        made.execute("COPY FROM DATABASE jupyter_pause_copy TO memory")
        made.execute("DETACH jupyter_pause_copy")
    return made


# --- matplotlib ----------------------------------------------------------------------------------------------------


class _Figure(Reviver):
    types = ("matplotlib.figure.Figure",)
    derived = True
    rebuilt = False

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        recipe: Tuple[Any, ...] = value.__reduce_ex__(5)
        state = recipe[2] if len(recipe) > 2 else None
        if type(state) is not dict or not state.get("_restore_to_pylab"):
            return recipe
        inside = dict(state, _restore_to_pylab=False)
        return recipe[0], recipe[1], (inside, value.canvas.manager.num), None, None, restore_figure


def restore_figure(figure: Any, state: Any) -> None:
    """A figure that pyplot knows by its number."""
    inside, number = state
    figure.__setstate__(inside)
    import matplotlib.pyplot as plt

    manager = plt._get_backend_mod().new_figure_manager_given_figure(number, figure)
    plt._pylab_helpers.Gcf._set_new_active_manager(manager)


# --- widgets -------------------------------------------------------------------------------------------------------


class _Comm(Reviver):
    """A widget's line to its picture in the notebook."""

    types = ("comm.base_comm.BaseComm",)
    derived = True

    def describe(self, value: Any) -> Optional[str]:
        return "its picture in the notebook is connected again"

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        state = (value._msg_callback, value._close_callback)
        return make_comm, (type(value), value.comm_id, value.target_name), state, None, None, set_comm


def make_comm(cls: Any, identifier: str, target: str) -> Any:
    """A line that the other side has open already; it answers to messages."""
    made = cls(comm_id=identifier, target_name=target, primary=False)
    importlib.import_module("comm").get_comm_manager().register_comm(made)
    return made


def set_comm(made: Any, state: Any) -> None:
    """What is called for messages; widgets are found by their line."""
    made._msg_callback, made._close_callback = state
    widget = getattr(state[0], "__self__", None)
    known = getattr(sys.modules.get("ipywidgets.widgets.widget"), "_instances", None)
    if widget is not None and type(known) is dict:
        known[made.comm_id] = widget


class _Traits(Reviver):
    """Objects with traits forget on purpose who observes them, unless the class itself does."""

    types = ("traitlets.traitlets.HasTraits",)
    derived = True
    rebuilt = False

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        recipe: Tuple[Any, ...] = value.__reduce_ex__(5)
        seen = [
            (handler, name, kind)
            for name, kinds in value._trait_notifiers.items()
            for kind, handlers in kinds.items()
            for handler in handlers
            if not hasattr(handler, "class_init")  # what the class itself observes is observed again
        ]
        if not seen or len(recipe) < 3 or len(recipe) > 5:
            return recipe
        return recipe[0], recipe[1], (recipe[2], seen), None, None, observe_again


def observe_again(made: Any, state: Any) -> None:
    """Its values, then who observes them."""
    inside, seen = state
    made.__setstate__(inside)
    for handler, name, kind in seen:
        made._add_notifiers(handler, name, kind)


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
