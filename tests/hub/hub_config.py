# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Configuration of the tests' JupyterHub: the real Hub and its real local spawner. What differs comes by environment.

Only a browser needs a proxy; without one the Hub and the servers are asked at their own ports.
"""

from __future__ import annotations

import json
import os
from typing import Any

from jupyterhub.auth import DummyAuthenticator
from jupyterhub.proxy import ConfigurableHTTPProxy, Proxy
from jupyterhub.spawner import SimpleLocalProcessSpawner

FACTS: dict[str, Any] = json.loads(os.environ["TEST_HUB"])


class NoProxy(Proxy):
    """Remembers routes, as the Hub wants it, and routes nothing."""

    should_start = False
    routes: dict[str, dict[str, Any]] = {}  # noqa: RUF012

    async def add_route(self, routespec: str, target: str, data: dict[str, Any]) -> None:
        self.routes[routespec] = {"routespec": routespec, "target": target, "data": data}

    async def delete_route(self, routespec: str) -> None:
        self.routes.pop(routespec, None)

    async def get_all_routes(self) -> dict[str, dict[str, Any]]:
        return dict(self.routes)


c = get_config()  # type: ignore[name-defined]  # noqa: F821
if FACTS["proxy"]:
    c.JupyterHub.proxy_class = ConfigurableHTTPProxy
    c.ConfigurableHTTPProxy.command = FACTS["proxy"]
    c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{FACTS['proxy_api_port']}"
    c.ConfigurableHTTPProxy.pid_file = f"{FACTS['base']}/proxy.pid"
else:
    c.JupyterHub.proxy_class = NoProxy
c.JupyterHub.authenticator_class = DummyAuthenticator
c.JupyterHub.spawner_class = SimpleLocalProcessSpawner
c.JupyterHub.bind_url = f"http://127.0.0.1:{FACTS['public_port']}"
c.JupyterHub.hub_bind_url = f"http://127.0.0.1:{FACTS['port']}"
c.JupyterHub.db_url = f"sqlite:///{FACTS['base']}/hub.sqlite"
c.JupyterHub.cookie_secret_file = f"{FACTS['base']}/cookie_secret"
c.JupyterHub.allow_named_servers = True
c.JupyterHub.services = [{"name": "test", "api_token": FACTS["token"]}]
c.JupyterHub.load_roles = [
    {"name": "test", "scopes": ["admin:users", "admin:servers", "access:servers"], "services": ["test"]}
]
c.Authenticator.allow_all = True
c.SimpleLocalProcessSpawner.home_dir_template = f"{FACTS['base']}/homes/{{username}}"
c.Spawner.ip = "127.0.0.1"
c.Spawner.args = FACTS["args"]
c.Spawner.environment = FACTS["environment"]
c.Spawner.interrupt_timeout = FACTS["interrupt_timeout"]
if FACTS["scopes"] is not None:
    c.Spawner.server_token_scopes = FACTS["scopes"]
