"""Assembles the application: service, routes, and the background tasks of its lifespan."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from fastapi import FastAPI, Response
from fastapi.concurrency import run_in_threadpool
from sqlalchemy.exc import DBAPIError

from apps.ingestion import health
from apps.ingestion.api.bodies import HealthBody
from apps.ingestion.api.middleware import BodyLimit
from apps.ingestion.api.problems import ProblemBody, add_problems
from apps.ingestion.api.routes import document_routes
from apps.ingestion.database import open_engine, open_store
from apps.ingestion.metrics import ServiceMetrics
from apps.ingestion.relay import open_broker, relay_to_consumers, relay_to_rabbitmq
from apps.ingestion.service import DocumentService
from apps.ingestion.settings import Settings
from apps.runtime.correlation import Correlation
from apps.runtime.metrics import HttpMetrics, metrics_page
from apps.runtime.problems import ProblemApi
from apps.runtime.topology import declaring
from apps.runtime.tracing import OURS_ONLY, HttpTracing
from pillarbox import Outbox, Relay

log = logging.getLogger(__name__)

CLEANUP_EVERY = 600.0
"""Seconds between two deletions of expired Idempotency-Keys."""


def create_app(settings: Settings) -> FastAPI:
    engine, store = open_engine(settings.store), open_store(settings.store)
    metrics = ServiceMetrics(store)
    service = DocumentService(engine, Outbox(observers=[metrics.record]), keep_keys=settings.keep_keys)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            stack.callback(engine.dispose)
            stack.push_async_callback(store.aclose)
            await stack.enter_async_context(_cleaning_up(service))
            if settings.relay == "embedded":
                if settings.transport:
                    broker = open_broker(settings.transport)
                    stack.push_async_callback(broker.aclose)
                    relay = relay_to_rabbitmq(store, broker, settings.publisher, metrics.relay)
                else:
                    relay = relay_to_consumers(store, engine, settings.publisher, metrics.relay, [metrics.consumer])
                await stack.enter_async_context(_running(relay))
            elif settings.transport:
                await stack.enter_async_context(declaring(open_broker(settings.transport)))
            yield

    app = ProblemApi(
        problem=ProblemBody,
        title="Document ingestion",
        version="1",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        telemetry=OURS_ONLY,
    )
    add_problems(app)
    app.add_middleware(BodyLimit)
    app.add_middleware(Correlation)
    app.add_middleware(HttpMetrics, registry=metrics.registry)
    app.add_middleware(HttpTracing)
    app.include_router(document_routes(service))
    app.add_route("/metrics", metrics_page(metrics.registry, metrics.refresh), include_in_schema=False)

    @app.get("/health", tags=["health"], responses={503: {"model": HealthBody, "description": "DOWN"}})
    async def healthy(response: Response) -> HealthBody:
        found = await health.check(store, relay=settings.relay, max_backlog=settings.max_backlog)
        response.status_code = 200 if found.status == "UP" else 503
        return HealthBody.of(found)

    @app.get("/health/live", tags=["health"])
    async def alive() -> dict[str, str]:
        """For a container runtime: a backlog does not call for a restart."""
        return {"status": "UP"}

    return app


@asynccontextmanager
async def _running(relay: Relay) -> AsyncIterator[None]:
    """Run the relay next to the requests; leaving the block drains it."""
    task = asyncio.create_task(relay.run())
    task.add_done_callback(_log_failure)
    try:
        yield
    finally:
        relay.stop()
        await asyncio.wait([task])


def _log_failure(task: asyncio.Task[None]) -> None:
    """The API continues without a relay: events stay pending, and `/health` is DOWN."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.critical("The relay failed: %s", error)


@asynccontextmanager
async def _cleaning_up(service: DocumentService) -> AsyncIterator[None]:
    task = asyncio.create_task(_clean_up(service))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _clean_up(service: DocumentService) -> None:
    while True:
        try:
            await run_in_threadpool(service.delete_expired_keys)
        except DBAPIError as error:
            log.warning("Expired Idempotency-Keys were not removed: %s", type(error.orig).__name__)
        await asyncio.sleep(CLEANUP_EVERY)
