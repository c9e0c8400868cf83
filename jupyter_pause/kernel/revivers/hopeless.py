# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What can never come back, and why."""

from __future__ import annotations

from typing import Dict, Optional

from .base import OWN_RULES, full_name

_QUERY = "a query that was not fetched belongs to its connection; ask again"
_CLOUD = "it holds credentials and connections of a cloud service, which are not stored; make it again"

#: Full type name -> why. Derived types are lost too.
HOPELESS: Dict[str, str] = {
    "builtins.generator": "a generator's position lives in the interpreter and cannot be saved",
    "builtins.coroutine": "a coroutine's position lives in the interpreter and cannot be saved",
    "builtins.async_generator": "a generator's position lives in the interpreter and cannot be saved",
    "builtins.frame": "a running frame cannot be saved",
    "builtins.traceback": "a traceback holds running frames, which cannot be saved",
    "socket.socket": "a network connection ends with the process",
    "_socket.socket": "a network connection ends with the process",
    "ssl.SSLContext": "a security context of the network library cannot be saved",
    "_ssl._SSLContext": "a security context of the network library cannot be saved",
    "subprocess.Popen": "a child process cannot be saved",
    "multiprocessing.process.BaseProcess": "a child process cannot be saved",
    "multiprocessing.queues.Queue": "a queue between processes ends with the process",
    "multiprocessing.queues.SimpleQueue": "a queue between processes ends with the process",
    "multiprocessing.synchronize.SemLock": "a lock between processes ends with the process",
    "multiprocessing.managers.BaseManager": "a manager process ends with the process",
    "multiprocessing.shared_memory.SharedMemory": "shared memory ends with the process",
    "asyncio.futures.Future": "a pending result belongs to a running event loop",
    "_asyncio.Future": "a pending result belongs to a running event loop",
    "_asyncio.Task": "a task belongs to a running event loop",
    "tempfile._TemporaryFileWrapper": "a temporary file is deleted when it is closed",
    "sqlite3.Cursor": "a database cursor's position cannot be saved",
    "sqlite3.Row": "a database row belongs to its cursor",
    "select.epoll": "it belongs to the process",
    "weakref.finalize": "a finalizer belongs to the process",
    "_contextvars.Context": "a context belongs to the process",
    "contextvars.Context": "a context belongs to the process",
    "contextvars.Token": "a context token belongs to the process",
    "posix.ScandirIterator": "the listing of a folder cannot be continued; list it again",
    "_hashlib.HASH": "a hash in progress belongs to the library that computes it",
    "tempfile.TemporaryDirectory": "a temporary folder is deleted with the process",
    "shelve.Shelf": "a shelf must be closed to be complete on disk; open it again",
    "sqlite3.Blob": "a part of a database that is open cannot be saved",
    "pandas.io.parsers.readers.TextFileReader": "a file that is read in parts cannot be continued; open it again",
    "pyarrow.parquet.core.ParquetFile": "a file that is read in parts cannot be continued; open it again",
    "pyarrow.lib.RecordBatchReader": "a stream that is read in parts cannot be continued; open it again",
    "duckdb._relation.DuckDBPyRelation": _QUERY,
    "_duckdb.DuckDBPyRelation": _QUERY,
    "duckdb.duckdb.DuckDBPyRelation": _QUERY,
    "jinja2.environment.Template": "the library does not keep a template's text; make it again",
    "botocore.client.BaseClient": _CLOUD,
    "boto3.resources.base.ServiceResource": _CLOUD,
    "boto3.session.Session": _CLOUD,
    "botocore.session.Session": _CLOUD,
    "google.cloud.client.Client": _CLOUD,
    "google.auth.credentials.Credentials": _CLOUD,
    "zmq.sugar.context.Context": "a network connection ends with the process",
    "zmq.sugar.socket.Socket": "a network connection ends with the process",
    "_io._IOBase": "this kind of open file cannot be opened again",
}


def hopeless(cls: type) -> Optional[str]:
    """Why objects of a type can never come back, or None."""
    for base in cls.__mro__:
        reason = HOPELESS.get(full_name(base))
        if reason is not None:
            return reason
        if base is not object and not OWN_RULES.isdisjoint(base.__dict__):
            return None
    return None
