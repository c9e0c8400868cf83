# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Variables that hold credentials by their kind: they come back whole, and the person is told so before the click.

What a person gave an object is a value of theirs, as a string with a password is: it is stored, and the checkpoint is
owner-only. Only what kind of credentials there is is said here, never a value; nothing of the objects is called.
"""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, Optional

from .inside import attributes_of

#: Names of headers that carry credentials.
_HEADER = re.compile("auth|token|key|secret|cookie|passw|credential", re.IGNORECASE)


def reader_of(cls: type) -> Optional[Callable[[Any], Optional[str]]]:
    """What tells the note (a clause) for objects of a type, or None for nearly all types."""
    for base in type.__dict__["__mro__"].__get__(cls):
        kind = _READERS.get("%s.%s" % (base.__dict__.get("__module__"), type.__dict__["__qualname__"].__get__(base)))
        if kind is not None:
            return _safely(kind)
    return None


def _safely(read: Callable[[Any], Optional[str]]) -> Callable[[Any], Optional[str]]:
    def note(value: Any) -> Optional[str]:
        try:
            found = read(value)
        except Exception:  # another version of the library, with other insides
            found = "credentials, if it has any"
        return None if found is None else "it comes back with its %s, so the checkpoint holds them" % found

    return note


def _of_url(value: Any) -> Optional[str]:
    """SQLAlchemy's address is a tuple: driver, user, password, ..."""
    return "user name and password" if tuple.__getitem__(value, 2) is not None else None


def _of_engine(value: Any) -> Optional[str]:
    return _of_url(attributes_of(value)["url"])


def _of_async_engine(value: Any) -> Optional[str]:
    return _of_engine(attributes_of(value)["sync_engine"])


def _of_requests(value: Any) -> Optional[str]:
    held = attributes_of(value)
    names = list(attributes_of(held["headers"])["_store"])
    return _listed(held["auth"], names, attributes_of(held["cookies"])["_cookies"])


def _of_httpx(value: Any) -> Optional[str]:
    held = attributes_of(value)
    names = [item[1].decode("latin-1") for item in attributes_of(held["_headers"])["_list"]]
    return _listed(held["_auth"], names, attributes_of(attributes_of(held["_cookies"])["jar"])["_cookies"])


def _listed(login: Any, headers: Any, cookies: Any) -> Optional[str]:
    found = ["login"] if login is not None else []
    found += ["headers"] if any(type(name) is str and _HEADER.search(name) for name in headers) else []
    found += ["cookies"] if type(cookies) is dict and len(cookies) else []
    return " and ".join(found) or None


_READERS: Dict[str, Callable[[Any], Optional[str]]] = {
    "sqlalchemy.engine.url.URL": _of_url,
    "sqlalchemy.engine.base.Engine": _of_engine,
    "sqlalchemy.ext.asyncio.engine.AsyncEngine": _of_async_engine,
    "requests.sessions.Session": _of_requests,
    "httpx._client.BaseClient": _of_httpx,
}
