"""`/health`: whether the service can do its work."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import APIRouter
from sqlalchemy import Engine, select

from apps.notifications.api.models import Health
from apps.notifications.api.problems import describe


def health_routes(engine: Engine) -> APIRouter:
    router = APIRouter(tags=["health"])

    @router.get("/health", responses=describe(HTTPStatus.SERVICE_UNAVAILABLE))
    def show_health() -> Health:
        """Asks the database; 503 if it does not answer."""
        with engine.begin() as connection:
            connection.execute(select(1))
        return Health()

    return router
