# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A kubeconfig through the official loader. Imports `kubernetes`: import this module only when a cluster is there."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from kubernetes.aio.client import Configuration
from kubernetes.aio.config import ConfigException
from kubernetes.aio.config.kube_config import KubeConfigLoader, KubeConfigMerger

from .errors import ClusterError

if TYPE_CHECKING:
    from .config import ClusterConfig

#: Seconds for an exec plugin, which may ask a person to log in.
EXEC_LIMIT = 120.0


@dataclass(frozen=True)
class Found:
    """What a context points at."""

    host: str
    namespace: str | None
    context: str


def look_up(files: str, context: str | None) -> Found:
    """Address and namespace of a context; nothing is authenticated. Blocks.

    Raises:
        ClusterError: cluster_config_invalid.
    """
    try:
        merged = _merged(files)
        loader = KubeConfigLoader(config_dict=merged, active_context=context, config_base_path=None)
        chosen = loader.current_context
        cluster = merged["clusters"].get_with_name(chosen["context"]["cluster"])["cluster"]
        return Found(str(cluster["server"]).rstrip("/"), chosen["context"].get("namespace"), chosen["name"])
    except _CONFIG_FAULTS as fault:
        raise _invalid(fault) from None


class KubeconfigLogin:
    """The credentials of one context; `configuration` is what the official client takes."""

    def __init__(self, config: ClusterConfig) -> None:
        self._config = config
        self._loader: Any = None
        self.configuration: Any = None

    async def load(self) -> None:
        """Read everything anew; exec plugins are run. Raises ClusterError (cluster_config_invalid)."""
        self.configuration = Configuration()
        try:
            # One read of a small file; whatever needs time (plugins, identity providers) is awaited in the loader.
            merged = _merged(self._config.kubeconfig or "")
            self._loader = KubeConfigLoader(
                config_dict=merged, active_context=self._config.context, config_base_path=None
            )
            async with asyncio.timeout(EXEC_LIMIT):
                await self._loader.load_and_set(self.configuration)
            if _has_plugin(merged, self._loader.current_context) and not self._has_credentials():
                # The loader only logs it, and every request would be sent as nobody.
                raise ConfigException("its login plugin failed")
        except (*_CONFIG_FAULTS, TimeoutError) as fault:
            raise _invalid(fault) from None
        if not self.configuration.proxy:
            self.configuration.proxy = _proxy_of_environment(self.configuration.host)

    def _has_credentials(self) -> bool:
        return bool(getattr(self._loader, "token", None) or self.configuration.cert_file)

    async def authorization(self) -> str | None:
        """The Authorization header; a plugin's token is renewed shortly before it ends."""
        if hasattr(self._loader, "exec_plugin_expiry"):
            async with asyncio.timeout(EXEC_LIMIT):
                await self._loader.load_from_exec_plugin()  # does nothing before the token's last minutes
        token = getattr(self._loader, "token", None)
        return str(token) if token else None


#: What the loader raises for files that it does not understand.
_CONFIG_FAULTS = (ConfigException, OSError, KeyError, TypeError, ValueError, AttributeError)


def _merged(files: str) -> Any:
    import yaml

    try:
        return KubeConfigMerger(files).config
    except yaml.YAMLError:
        raise ConfigException("it is not YAML") from None


def _has_plugin(merged: Any, context: Any) -> bool:
    user = context["context"].get("user")
    found = merged["users"].get_with_name(user, safe=True) if user else None
    return found is not None and "exec" in found["user"]


def _invalid(fault: BaseException) -> ClusterError:
    """Only the loader's own sentences are passed on: others may quote a token."""
    if isinstance(fault, TimeoutError):
        message = f"the login plugin did not answer within {EXEC_LIMIT:.0f} seconds"
    elif isinstance(fault, ConfigException):
        message = str(fault).rstrip(".")
    else:
        message = f"it is not understood ({type(fault).__name__})"
    return ClusterError("cluster_config_invalid", message=message)


def _proxy_of_environment(host: str) -> str | None:
    """The proxy for this address by HTTPS_PROXY, NO_PROXY and the like.

    Not left to aiohttp: where it reads the environment it reads ~/.netrc too, and an entry there makes every request
    fail ("cannot combine Authorization header").
    """
    address = urlsplit(host)
    if not address.hostname or proxy_bypass(address.hostname):
        return None
    return getproxies().get(address.scheme)
