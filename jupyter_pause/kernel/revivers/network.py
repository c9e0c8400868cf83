# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Security settings and pools of connections: the settings come back, connections are opened anew."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

from ..definitions import new_by_base
from ..generated import put_values_inside
from .base import Help, Reviver


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
