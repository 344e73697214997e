"""The JSON API: everything that the pages show and do, under `/api/v1`, described by an OpenAPI document.

It has the login, the roles, the masks and the audit of the pages. A script sends name and password as HTTP Basic; a
page of the console sends its session and a token. A POST carries JSON, which no form of another site can send.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.responses import Response
from starlette.routing import BaseRoute

from pillarbox.ops.console.api.actions import ACTIONS
from pillarbox.ops.console.api.endpoint import PREFIX, ApiEndpoint
from pillarbox.ops.console.api.openapi import document
from pillarbox.ops.console.api.queries import QUERIES
from pillarbox.ops.console.request import ConsoleRequest, Page, api_action, page
from pillarbox.ops.json_response import SafeJSONResponse


def query_routes() -> list[BaseRoute]:
    """What can be read."""

    async def described(request: ConsoleRequest) -> Response:
        actions = () if request.context.read_only else ACTIONS
        return SafeJSONResponse(document([*QUERIES, *actions], base=request.base))

    return [
        page(f"{PREFIX}/openapi.json", described),
        *(page(one.route, _json(one), timeout=one.timeout) for one in QUERIES),
    ]


def action_routes() -> list[BaseRoute]:
    """What can be done."""
    return [api_action(one.route, _json(one), needs=one.needs) for one in ACTIONS]


def _json(endpoint: ApiEndpoint) -> Page:
    answer: Callable[[ConsoleRequest], Awaitable[dict[str, Any]]] = endpoint.answer

    async def answered(request: ConsoleRequest) -> Response:
        endpoint.check(request)
        told = await asyncio.to_thread(request.context.masks.response, await answer(request))
        return SafeJSONResponse(told, background=request.later)

    return answered
