# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Events about pods, as scheduler, autoscaler and kubelet write them."""

from __future__ import annotations

import secrets

from tests.cluster.rest import Object

from .api import EVENT, Api, now


class Events:
    """Writes events; the same one again counts up instead."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._known: dict[tuple[str, str, str], tuple[str, int]] = {}

    async def normal(self, about: Object, reason: str, message: str, source: str) -> None:
        """An event of type Normal."""
        await self._write("Normal", about, reason, message, source)

    async def warning(self, about: Object, reason: str, message: str, source: str) -> None:
        """An event of type Warning."""
        await self._write("Warning", about, reason, message, source)

    async def _write(self, kind: str, about: Object, reason: str, message: str, source: str) -> None:
        metadata = about["metadata"]
        same = (metadata["uid"], reason, message)
        name, count = self._known.get(same, (f"{metadata['name']}.{secrets.token_hex(8)}", 0))
        self._known[same] = (name, count + 1)
        if count:
            patch = {"count": count + 1, "lastTimestamp": now()}
            await self._api.patch(EVENT, (metadata["namespace"], name), patch)
            return
        involved = {
            "apiVersion": about["apiVersion"],
            "kind": about["kind"],
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "uid": metadata["uid"],
        }
        await self._api.create(
            EVENT,
            {
                "metadata": {"name": name, "namespace": metadata["namespace"]},
                "involvedObject": involved,
                "type": kind,
                "reason": reason,
                "message": message,
                "source": {"component": source},
                "count": 1,
                "firstTimestamp": now(),
                "lastTimestamp": now(),
            },
        )
