# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""How Kubeflow's backend reads a body and says no: workspaces/backend/api/response_errors.go and helpers.go."""

from __future__ import annotations

import json
from typing import Any

from tests.cluster.rest import Object

from .http_server import Answer, Head

BODY_LIMIT = 1024 * 1024

MESSAGES = {
    401: "authentication is required to access this resource",
    403: "you are not authorized to access this resource",
    404: "the requested resource could not be found",
    500: "the server encountered a problem and could not process your request",
}
BODY = "request body was invalid"
INTERNAL = "validation error (see .cause.validation_errors[] for details)"
KUBERNETES = (
    "kubernetes validation error (see .cause.validation_errors[] for details) (note: .cause.validation_errors[].field "
    "values correspond to the internal k8s object, NOT the request body)"
)


def decoded(head: Head, body: bytes) -> Any | Answer:
    """The document of a body, or the answer that it is none."""
    if head.headers.get("content-type", "").split(";")[0].strip() != "application/json":
        return error(415, "Only application/json is supported")
    if len(body) > BODY_LIMIT:
        return error(413, "http: request body too large")
    try:
        return json.loads(body)
    except ValueError as problem:
        return error(400, f"error decoding request body: {problem}")


def error(status: int, message: str | None = None, cause: Object | None = None) -> Answer:
    """An error envelope."""
    about: Object = {"code": str(status), "message": message or MESSAGES[status]}
    if cause is not None:
        about["cause"] = cause
    return Answer(status, {"error": about})


def conflict(message: str, origin: str) -> Answer:
    """409. Where Kubernetes says so, the message is general; where the backend does, its own."""
    general = "kubernetes conflict error (see .cause.conflict_cause[] for details)"
    cause = {"conflict_cause": [{"origin": origin, "message": message}]}
    return error(409, general if origin == "KUBERNETES" else message, cause)


def invalid(message: str, field: str, kind: str, detail: str, origin: str = "INTERNAL") -> Answer:
    """422."""
    found = {"origin": origin, "type": kind, "field": field, "message": detail}
    return error(422, message, {"validation_errors": [found]})
