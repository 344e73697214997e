"""Problems (RFC 9457) in OpenAPI documents, and the methods of a path that was requested with another one."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.routing import BaseRoute, Match

MEDIA_TYPE = "application/problem+json"
_SCHEMAS = "#/components/schemas/{model}"
_NAME = "ProblemBody"


class ProblemApi(FastAPI):
    """An application whose OpenAPI document includes its errors."""

    def __init__(self, *, problem: type[BaseModel], **options: Any) -> None:
        """problem: the body of every error, called ProblemBody."""
        super().__init__(**options)
        self._problem = problem

    def openapi(self) -> dict[str, Any]:
        document = super().openapi()
        _, made = models_json_schema([(self._problem, "serialization")], ref_template=_SCHEMAS)
        document["components"]["schemas"] |= made["$defs"]
        return document


def describe(*statuses: HTTPStatus) -> dict[int | str, dict[str, Any]]:
    """The errors of a route, for its documentation; `ProblemApi` adds their schema."""
    schema = {"$ref": _SCHEMAS.format(model=_NAME)}
    return {
        int(status): {"description": status.phrase, "content": {MEDIA_TYPE: {"schema": schema}}} for status in statuses
    }


def allowed_methods(request: Request) -> dict[str, str]:
    """The header Allow. A path may have a route for each method; the error of the router names one of them."""
    found = {method for route in request.app.routes for method in _methods(route, request)}
    return {"Allow": ", ".join(sorted(found))}


def _methods(route: BaseRoute, request: Request) -> set[str]:
    """The methods of a route with the path of the request."""
    matches = route.matches(request.scope)[0] is not Match.NONE
    return set(getattr(route, "methods", None) or ()) if matches else set()
