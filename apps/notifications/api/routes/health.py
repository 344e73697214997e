"""`/health`: the state of the database and of both outboxes."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Response
from fastapi.concurrency import run_in_threadpool
from sqlalchemy import Engine

from apps.notifications.api.models import Health, Waiting
from apps.notifications.monitoring import Outboxes
from apps.notifications.orchestration.recipients import NO_RECIPIENTS, count_recipients
from apps.runtime.problems import describe


def health_routes(engine: Engine, outboxes: Outboxes, *, max_backlog: int) -> APIRouter:
    router = APIRouter(tags=["health"])

    def recipients() -> int:
        with engine.begin() as connection:
            return count_recipients(connection)

    down: dict[int | str, dict[str, Any]] = {503: {"model": Health, **describe(HTTPStatus.SERVICE_UNAVAILABLE)[503]}}

    @router.get("/health", responses=down)
    async def show_health(response: Response) -> Health:
        """UP, or DOWN with 503: the database does not respond, or a backlog exceeds the limit."""
        count = await run_in_threadpool(recipients)
        waiting = await outboxes.read() or {}
        reasons = [
            f"more than {max_backlog} {name} are pending" for name, one in waiting.items() if one.backlog > max_backlog
        ]
        if not waiting:
            reasons.append("the outboxes cannot be read")
        if reasons:
            response.status_code = HTTPStatus.SERVICE_UNAVAILABLE
        return Health(
            status="DOWN" if reasons else "UP",
            recipients=count,
            outboxes={name: Waiting.model_validate(one) for name, one in waiting.items()},
            reasons=reasons,
            warnings=[] if count else [NO_RECIPIENTS],
        )

    return router
