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

from pillarbox.ops.console.api.acting import ACTIONS
from pillarbox.ops.console.api.endpoint import PREFIX, Endpoint
from pillarbox.ops.console.api.openapi import document
from pillarbox.ops.console.api.reading import READINGS
from pillarbox.ops.console.visiting import Page, Visit, api_action, page
from pillarbox.ops.json_response import SafeJSONResponse


def looking() -> list[BaseRoute]:
    """What can be read."""

    async def described(visit: Visit) -> Response:
        actions = () if visit.desk.read_only else ACTIONS
        return SafeJSONResponse(document([*READINGS, *actions], base=visit.base))

    return [
        page(f"{PREFIX}/openapi.json", described),
        *(page(one.route, _json(one), patience=one.patience) for one in READINGS),
    ]


def writing() -> list[BaseRoute]:
    """What can be done."""
    return [api_action(one.route, _json(one), needs=one.needs) for one in ACTIONS]


def _json(endpoint: Endpoint) -> Page:
    answer: Callable[[Visit], Awaitable[dict[str, Any]]] = endpoint.answer

    async def answered(visit: Visit) -> Response:
        endpoint.check(visit)
        told = await asyncio.to_thread(visit.desk.masks.answer, await answer(visit))
        return SafeJSONResponse(told, background=visit.later)

    return answered
