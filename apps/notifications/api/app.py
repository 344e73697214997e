"""Assembles the API. All dependencies are parameters; there are no globals."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from http import HTTPStatus

from fastapi import Depends, FastAPI
from prometheus_client import CollectorRegistry
from sqlalchemy import Engine

from apps.notifications.api.authentication import Authenticate, only_own, trust_header
from apps.notifications.api.limits import LimitedBody
from apps.notifications.api.live import Live
from apps.notifications.api.problems import ProblemBody, handle_problems
from apps.notifications.api.queries.deliveries import DeliveryQueries
from apps.notifications.api.queries.feed import FeedQueries
from apps.notifications.api.queries.notifications import NotificationQueries
from apps.notifications.api.queries.preferences import PreferenceQueries
from apps.notifications.api.routes.health import health_routes
from apps.notifications.api.routes.live import live_routes
from apps.notifications.api.routes.notifications import notification_routes
from apps.notifications.api.routes.preferences import preference_routes
from apps.notifications.database import url_of
from apps.notifications.monitoring import MAX_BACKLOG, Outboxes
from apps.notifications.topology import is_rabbitmq, open_broker
from apps.runtime.correlation import Correlation
from apps.runtime.metrics import HttpMetrics, metrics_page
from apps.runtime.problems import ProblemApi, describe
from apps.runtime.topology import declaring
from apps.runtime.tracing import OURS_ONLY, HttpTracing

ANYWHERE = (
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.SERVICE_UNAVAILABLE,
)


def create_app(
    engine: Engine,
    *,
    authenticate: Authenticate = trust_header,
    poll_every: float = 0.5,
    heartbeat: float = 15.0,
    most_followers: int = 1000,
    max_backlog: int = MAX_BACKLOG,
    broker: str = "",
) -> FastAPI:
    """Create the application. The caller disposes of the engine. `app.state.live.close()` ends the live streams.

    authenticate: a FastAPI dependency that returns the id of the current user; the default trusts a header.
    poll_every, heartbeat, most_followers: see `Live`.
    max_backlog: with more pending events than this in an outbox, `/health` is DOWN.
    broker: the URL of the broker; the topology is declared at the start if it is a RabbitMQ. '' for none.
    """
    live = Live(FeedQueries(engine), poll_every=poll_every, heartbeat=heartbeat, most_followers=most_followers)
    registry = CollectorRegistry()
    outboxes = Outboxes(url_of(engine), registry=registry)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(outboxes.aclose)
            if broker and is_rabbitmq(broker):
                await stack.enter_async_context(declaring(open_broker(broker)))
            group = await stack.enter_async_context(asyncio.TaskGroup())
            group.create_task(live.poll())
            yield
            live.close()

    app = ProblemApi(
        problem=ProblemBody,
        title="Notifications",
        version="1",
        description="Notifications of users, their channels, and the state of their delivery.",
        lifespan=lifespan,
        telemetry=OURS_ONLY,
    )
    app.state.live = live
    app.add_middleware(LimitedBody)
    app.add_middleware(Correlation)
    app.add_middleware(HttpMetrics, registry=registry)
    app.add_middleware(HttpTracing)
    handle_problems(app)
    app.include_router(health_routes(engine, outboxes, max_backlog=max_backlog))
    app.add_route("/metrics", metrics_page(registry, outboxes.refresh), include_in_schema=False)
    for router in (
        preference_routes(PreferenceQueries(engine)),
        live_routes(live),
        notification_routes(NotificationQueries(engine), DeliveryQueries(engine)),
    ):
        app.include_router(router, dependencies=[Depends(only_own(authenticate))], responses=describe(*ANYWHERE))
    return app
