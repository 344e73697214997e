"""The OpenAPI document, generated from the endpoints."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from pillarbox.ops.console.api.endpoint import ApiEndpoint
from pillarbox.ops.console.api.schemas import reference, schemas_of

_ERRORS = {
    "400": "invalid request; `error` gives the reason",
    "401": "not logged in",
    "403": "not allowed",
    "404": "not found",
    "408": "the body of a POST did not arrive in time",
    "409": "changed concurrently",
    "413": "too large",
    "415": "the body of a POST is not application/json",
    "429": "too many wrong passwords; `Retry-After` says how long to wait",
    "500": "the users file cannot be read, or an error of the console, which its log has",
    "503": "store unavailable",
}


def document(endpoints: Sequence[ApiEndpoint], *, base: str) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Pillarbox console", "version": version("pillarbox")},
        "servers": [{"url": base or "/"}],
        "security": [{"password": []}, {"session": []}],
        "paths": {one.route: {"post" if one.posts else "get": _operation(one)} for one in endpoints},
        "components": {
            "securitySchemes": {
                "password": {"type": "http", "scheme": "basic"},
                "session": {"type": "apiKey", "in": "cookie", "name": "pillarbox_session"},
            },
            "schemas": schemas_of(*(one.returns for one in endpoints))
            | {
                "Error": {
                    "type": "object",
                    "properties": {"error": {"type": "string"}, "retryable": {"type": "boolean"}},
                    "required": ["error"],
                }
            },
        },
    }


def _operation(endpoint: ApiEndpoint) -> dict[str, Any]:
    found: dict[str, Any] = {
        "summary": endpoint.summary,
        "operationId": endpoint.path.strip("/").replace("/", "_"),
        "description": f"Needs the role {endpoint.needs.word}.",
        "responses": {
            "200": {"description": "done", "content": {"application/json": {"schema": reference(endpoint.returns)}}},
            **{status: _error(said) for status, said in _ERRORS.items()},
        },
    }
    described = {name: {"description": said, **endpoint.schema_of(name)} for name, said in endpoint.fields.items()}
    if endpoint.posts:
        body = {
            "type": "object",
            "properties": described,
            "required": list(endpoint.required),
            "additionalProperties": False,
        }
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    else:
        found["parameters"] = [
            {
                "name": name,
                "in": "query",
                "description": said,
                "required": name in endpoint.required,
                "schema": dict(endpoint.schema_of(name)),
            }
            for name, said in endpoint.fields.items()
        ]
    return found


def _error(said: str) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Error"}
    return {"description": said, "content": {"application/json": {"schema": schema}}}
