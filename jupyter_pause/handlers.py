# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""REST, as `openapi.yaml` fixes it. Handlers check who asks and what is asked; everything else is `pauser.py`."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any, TypeVar

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from jupyter_server.extension.handler import ExtensionHandlerMixin
from jupyter_server.utils import ensure_async, url_path_join
from pydantic import BaseModel, ConfigDict, ValidationError
from tornado import web

from .checkpoint_row import checkpoint_row
from .errors import PauseError, as_pause_error
from .states import Decision, PauseRequest, ResumeRequest

if TYPE_CHECKING:
    from .pauser import Pauser

AUTH_RESOURCE = "jupyter_pause"
Body = TypeVar("Body", bound=BaseModel)

#: Names of objects in Kubernetes (RFC 1123 subdomains): anything else never becomes part of a request.
_OBJECT_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")

#: Seconds that a request waits for the take-over of an earlier server's sessions.
LONGEST_HOLD = 10.0

#: At most this many seconds may be asked for in `GET inventory?wait=`.
LONGEST_WAIT = 30.0


class _SavedDocument(BaseModel):
    model_config = ConfigDict(extra="forbid")
    path: str
    saved: bool


class DocumentsSaved(BaseModel):
    """Body of `POST documents`."""

    model_config = ConfigDict(extra="forbid")
    request: str
    client: str
    documents: list[_SavedDocument]


class PauseHandler(ExtensionHandlerMixin, APIHandler):
    """Base of all handlers: JSON errors with a stable code, and no activity from looking."""

    auth_resource = AUTH_RESOURCE

    @property
    def pauser(self) -> Pauser:
        """The state machine of this server."""
        pauser: Pauser = self.settings["jupyter_pause_pauser"]
        return pauser

    async def prepare(self) -> None:  # type: ignore[override]
        """Reading our state is not a person's activity (cases.md S09)."""
        if self.request.method == "GET":
            self._track_activity = False
        await super().prepare()
        await self._wait_until_taken_over()

    async def _wait_until_taken_over(self) -> None:
        """Before an earlier server's sessions are taken over no answer would be the truth: wait like `gate.py`."""
        if not self.pauser.taken_over.is_set():
            try:
                async with asyncio.timeout(LONGEST_HOLD):
                    await self.pauser.taken_over.wait()
            except TimeoutError:
                raise web.HTTPError(503, "The server is still starting; try again.") from None

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Errors as `ApiError`."""
        error = (kwargs.get("exc_info") or (None, None))[1]
        ours = as_pause_error(error)
        if ours is not None:
            status_code = ours.status
            body = ours.to_model().model_dump(mode="json")
        else:
            message = getattr(error, "log_message", None) if isinstance(error, web.HTTPError) else None
            reason = getattr(error, "reason", None)
            code = {400: "bad_request", 403: "forbidden", 404: "no_such_call", 405: "method_not_allowed"}.get(
                status_code, "internal"
            )
            body = {
                "message": message or self._reason or "Internal error",
                "reason": reason,
                "code": code,
                "params": {},
            }
        self.set_status(status_code)
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps(body))

    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        """A refused request is not a fault of the server: no traceback in the log."""
        ours = as_pause_error(value)
        if ours is not None and ours.status < 500:
            return
        super().log_exception(typ, value, tb)

    def body(self, model: type[Body]) -> Body:
        """The request's body; raises PauseError `bad_request` naming the field."""
        try:
            return model.model_validate_json(self.request.body or b"{}")
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"]) or "body"
            raise PauseError("bad_request", detail=f"{where}: {first['msg']}", field=where) from None

    async def require(self, action: str, resource: str) -> None:
        """Raise 403 unless the user may do `action` on `resource` too."""
        allowed = await ensure_async(self.authorizer.is_authorized(self, self.current_user, action, resource))
        if not allowed:
            raise web.HTTPError(403)

    def flag(self, name: str) -> bool:
        """A query argument that is `true` or `false` (when it is missing)."""
        value = self.get_query_argument(name, "false")
        if value not in ("true", "false"):
            raise PauseError("bad_request", detail=f"{name}: not true or false", field=name)
        return value == "true"

    def answer(self, model: BaseModel) -> None:
        """Finish with a record."""
        self.finish(model.model_dump_json(by_alias=True))


class StateHandler(PauseHandler):
    """`GET state`."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """The state of everything."""
        self.answer(await self.pauser.state())


class InventoryHandler(PauseHandler):
    """`GET inventory`."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """What will be restored, for one kernel."""
        try:
            wait = float(self.get_query_argument("wait", "0"))
        except ValueError:
            raise PauseError("bad_request", detail="wait: not a number", field="wait") from None
        if not 0 <= wait <= LONGEST_WAIT:
            raise PauseError("bad_request", detail=f"wait: not between 0 and {LONGEST_WAIT:g}", field="wait")
        kernel = self.get_query_argument("kernel", "")
        if not kernel:
            raise PauseError("bad_request", detail="kernel: missing", field="kernel")
        self.answer(await self.pauser.inventory(kernel, wait))


class PauseRequestHandler(PauseHandler):
    """`POST pause`."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """Begin a pause."""
        await self.require("write", "kernels")
        operation = await self.pauser.pause(self.body(PauseRequest))
        _accepted(self, operation)


class ResumeRequestHandler(PauseHandler):
    """`POST resume`."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """Begin a resume."""
        await self.require("write", "kernels")
        await self.require("execute", "kernels")
        await self.require("write", "sessions")
        operation = await self.pauser.resume(self.body(ResumeRequest))
        _accepted(self, operation)


def _accepted(handler: PauseHandler, operation: Any) -> None:
    handler.set_status(202)
    handler.set_header("Location", url_path_join(handler.base_url, "jupyter-pause/api/operations", operation.id))
    handler.finish(json.dumps({"operation": operation.model_dump(mode="json")}))


class OperationHandler(PauseHandler):
    """`operations/ID`."""

    @web.authenticated
    @authorized
    async def get(self, operation_id: str) -> None:
        """How far it is."""
        self.answer(self.pauser.operations.find(operation_id).snapshot())

    @web.authenticated
    @authorized
    async def post(self, operation_id: str) -> None:
        """Answer its question."""
        await self.require("write", "kernels")
        self.answer(self.pauser.operations.decide(operation_id, self.body(Decision).decision))

    @web.authenticated
    @authorized
    async def delete(self, operation_id: str) -> None:
        """Cancel it."""
        await self.require("write", "kernels")
        self.answer(await self.pauser.cancel(operation_id))


class DocumentsHandler(PauseHandler):
    """`POST documents`."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """A frontend says what it saved."""
        body = self.body(DocumentsSaved)
        self.pauser.documents.answer(body.request, body.client, {d.path: d.saved for d in body.documents})
        self.set_status(204)
        self.finish()


class CheckpointsHandler(PauseHandler):
    """`GET checkpoints`."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """All of them, newest first; one that cannot be read is listed as damaged."""
        entries = await asyncio.to_thread(self.pauser.store.entries)
        used = await self.pauser.checkpoints.used()
        rows = [checkpoint_row(entry, in_use=entry.id in used) for entry in entries]
        self.finish(json.dumps({"checkpoints": rows}))


class CheckpointHandler(PauseHandler):
    """`checkpoints/ID`."""

    @web.authenticated
    @authorized
    async def get(self, checkpoint_id: str) -> None:
        """Its manifest, and whether the signature is right."""
        entry = await asyncio.to_thread(self.pauser.store.entry, checkpoint_id)
        used = await self.pauser.checkpoints.used()
        self.finish(json.dumps(checkpoint_row(entry, in_use=entry.id in used)))

    @web.authenticated
    @authorized
    async def delete(self, checkpoint_id: str) -> None:
        """Delete it for good."""
        await self.require("write", "kernels")
        await self.pauser.checkpoints.delete(checkpoint_id, force=self.flag("force"))
        self.set_status(204)
        self.finish()


class SnapshotsHandler(PauseHandler):
    """`GET snapshots`."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Pod snapshots of this workspace, newest first."""
        rows = await self.pauser.require_workspace().snapshots()
        self.finish(json.dumps({"snapshots": [row.model_dump(mode="json") for row in rows]}))


class SnapshotHandler(PauseHandler):
    """`snapshots/ID`."""

    @web.authenticated
    @authorized
    async def delete(self, snapshot_id: str) -> None:
        """Ask the cluster to delete it."""
        await self.require("write", "kernels")
        if not is_object_name(snapshot_id):
            raise PauseError("bad_id")
        await self.pauser.require_workspace().delete_snapshot(snapshot_id, force=self.flag("force"))
        self.set_status(202)
        self.finish()


class UnknownCallHandler(PauseHandler):
    """Anything else below our prefix: a JSON 404 that needs a login too."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """No such call."""
        _no_such_call()

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """No such call."""
        _no_such_call()

    @web.authenticated
    @authorized
    async def delete(self) -> None:
        """No such call."""
        _no_such_call()


def is_object_name(name: str) -> bool:
    """Whether it can be the name of an object in a cluster."""
    return _OBJECT_NAME.fullmatch(name) is not None


def _no_such_call() -> None:
    raise web.HTTPError(404, "There is no such call; see the REST reference.")


#: Path below `{base_url}jupyter-pause/api/` -> handler. A test walks all of them.
ROUTES: list[tuple[str, type[PauseHandler]]] = [
    (r"state", StateHandler),
    (r"inventory", InventoryHandler),
    (r"pause", PauseRequestHandler),
    (r"resume", ResumeRequestHandler),
    (r"operations/([^/]+)", OperationHandler),
    (r"documents", DocumentsHandler),
    (r"checkpoints", CheckpointsHandler),
    (r"checkpoints/([^/]+)", CheckpointHandler),
    (r"snapshots", SnapshotsHandler),
    (r"snapshots/([^/]+)", SnapshotHandler),
    (r".*", UnknownCallHandler),
]


def extension_handlers() -> list[tuple[str, type[PauseHandler]]]:
    """All routes as the ExtensionApp wants them."""
    return [(rf"/jupyter-pause/api/{path}", handler) for path, handler in ROUTES]
