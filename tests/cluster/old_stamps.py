# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A server extension for tests: `POST test/old-stamps?hours=H` makes the server one that nobody used for so long."""

from __future__ import annotations

import datetime as dt
from typing import Any

from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import url_path_join
from tornado import web


class OldStamps(APIHandler):
    """Puts every stamp of the server's and the kernels' last activity back."""

    @web.authenticated
    async def post(self) -> None:
        """Its own request must not count as activity either."""
        self._track_activity = False
        at = dt.datetime.now(dt.UTC) - dt.timedelta(hours=float(self.get_argument("hours")))
        settings: dict[str, Any] = self.settings
        for name in [key for key in settings if key.endswith("_last_activity")]:
            settings[name] = at
        settings["last_activity_times"].clear()
        settings["started"] = self.kernel_manager.last_kernel_activity = at
        for kernel_id in self.kernel_manager.list_kernel_ids():
            self.kernel_manager.get_kernel(kernel_id).last_activity = at
        self.finish("{}")


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "tests.cluster.old_stamps"}]


def _load_jupyter_server_extension(serverapp: Any) -> None:
    url = url_path_join(serverapp.web_app.settings["base_url"], "test/old-stamps")
    serverapp.web_app.add_handlers(".*$", [(url, OldStamps)])
