# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Connections to databases."""

from __future__ import annotations

import importlib
import os
import tempfile
from typing import Any, Optional, Tuple

from .. import recipes
from ..context import current, reaches_out
from .base import CannotRevive, Help, Reviver


class _Sqlite(Reviver):
    types = ("sqlite3.Connection",)
    derived = True

    def describe(self, value: Any) -> Optional[str]:
        try:
            value.total_changes  # noqa: B018  (raises where the connection is closed or another thread's)
        except Exception as error:
            if "closed" in str(error):
                return None
            raise CannotRevive("its database cannot be read (%s)" % error) from None
        return "connected again" if not value.in_transaction else "connected again; its open transaction is not kept"

    def reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        recipe: Tuple[Any, ...] = help.on_main_thread(lambda: self._reduce(value, help))
        return recipe

    def _reduce(self, value: Any, help: Help) -> Tuple[Any, ...]:
        if self.describe(value) is None:
            return make_closed, ()
        settings = (value.isolation_level, value.row_factory, value.text_factory)
        rows = value.execute("PRAGMA database_list")
        rows.row_factory = None
        files = {row[1]: row[2] for row in rows.fetchall()}
        if any(name not in ("main", "temp") for name in files):
            raise CannotRevive("it has other databases attached")
        if files.get("main"):
            if value.in_transaction:
                raise CannotRevive("it has changes that were not committed; commit or roll them back, then pause again")
            return recipes.open_database, (os.path.abspath(files["main"]), *settings)
        return recipes.make_database, (_database_bytes(value, help.folder), *settings)


def _database_bytes(connection: Any, folder: str) -> bytes:
    if connection.execute("PRAGMA page_count").fetchone()[0] == 0:
        return b""  # nothing was ever written to it
    if hasattr(connection, "serialize"):
        return bytes(connection.serialize())
    import sqlite3  # Python before 3.11 copies through a file

    path = os.path.join(folder, "database.tmp")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.close(descriptor)
    try:
        copy = sqlite3.connect(path)
        connection.backup(copy)
        copy.close()
        with open(path, "rb") as stream:
            return stream.read()
    finally:
        os.unlink(path)


def make_closed() -> Any:
    """A connection that was closed."""
    import sqlite3

    made = sqlite3.connect(":memory:")
    made.close()
    return made


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
