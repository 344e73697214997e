"""`python -m apps.ingestion`: one command per process."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import urllib.request
from collections.abc import Coroutine
from pathlib import Path
from socket import socket
from typing import Any

import click

from apps.ingestion.settings import METRICS, Settings, SettingsError

CONFIG = Path(__file__).with_name("pillarbox.toml")
VALIDATE_PORT, ENRICH_PORT, RELAY_PORT = "127.0.0.1:8082", "127.0.0.1:8083", "127.0.0.1:8084"
"""Metrics and health of each process, unless INGESTION_METRICS says otherwise."""


@click.group()
def main() -> None:
    """The document ingestion service. Everything is set by INGESTION_… variables; see the README."""


@main.command()
@click.option("--wait", type=click.FloatRange(0, 3600), default=0, metavar="SECONDS", help="Wait for the database.")
def migrate(wait: float) -> None:
    """Create or upgrade the tables; safe to run again."""
    from apps.ingestion.running import bring_up_to_date

    _run(bring_up_to_date(_settings("ingestion-migrate"), wait=wait))
    click.echo("the database is up to date")


@main.command()
def serve() -> None:
    """Serve the HTTP API, with an embedded relay unless INGESTION_RELAY says otherwise. SIGTERM drains."""
    import uvicorn

    from apps.ingestion.api.app import create_app
    from apps.ingestion.running import check
    from apps.runtime.port import ApiProtocol
    from pillarbox.telemetry.connections import ACCEPT_BATCH, limit_descriptor_logs

    settings = _settings("ingestion-service")
    _run(check(settings))
    # After draining, uvicorn raises the signal again; exit with code 0 then.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    limit_descriptor_logs()
    uvicorn.run(
        create_app(settings),
        host=settings.host,
        port=settings.port,
        http=ApiProtocol,
        backlog=ACCEPT_BATCH,
        log_config=None,
        timeout_graceful_shutdown=10,
    )


@main.command()
def validate() -> None:
    """Run validation-service: consume document.uploaded.q until SIGTERM."""
    from apps.ingestion.consumers.validation import validation
    from apps.ingestion.running import consume
    from apps.ingestion.topology import UPLOADED_QUEUE

    settings = _settings("validation-service", broker=True)
    _run(consume(settings, UPLOADED_QUEUE, validation, _port(VALIDATE_PORT)))


@main.command()
def enrich() -> None:
    """Run enrichment-service: consume document.validated.q until SIGTERM."""
    from apps.ingestion.consumers.enrichment import enrichment
    from apps.ingestion.running import consume
    from apps.ingestion.topology import VALIDATED_QUEUE

    settings = _settings("enrichment-service", broker=True)
    _run(consume(settings, VALIDATED_QUEUE, enrichment, _port(ENRICH_PORT)))


@main.command()
def relay() -> None:
    """Run the relay as a separate process (INGESTION_RELAY=separate). SIGTERM drains.

    It is `pillarbox relay` with apps/ingestion/pillarbox.toml; OUTBOX_PUBLISHER_… and INGESTION_… apply.
    """
    from apps.runtime.relaying import listening, run_relay

    settings = _settings("ingestion-relay", broker=True)
    given = settings.publisher.as_relay_settings | listening(_port(RELAY_PORT))
    run_relay(CONFIG, store=settings.store, transport=settings.transport, settings=given)


@main.command()
def probe() -> None:
    """Exit with 0 if the service on this machine responds; for the container's health check."""
    settings = _settings("probe")
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104 - nothing is bound
    address = f"[{host}]:{settings.port}" if ":" in host else f"{host}:{settings.port}"
    try:
        with urllib.request.urlopen(f"http://{address}/health/live", timeout=3):
            return
    except OSError as error:
        raise click.ClickException(f"no response from {address}: {error}") from None


def _settings(service: str, *, broker: bool = False) -> Settings:
    """Read the settings, and configure logs and spans. service: the name in spans."""
    from apps.ingestion import logs
    from apps.runtime import tracing

    try:
        settings = Settings.read(os.environ)
        tracing.configure(service)
    except (SettingsError, tracing.TracingError) as error:
        raise click.UsageError(str(error)) from None
    if broker and not settings.transport:
        raise click.UsageError("INGESTION_TRANSPORT is not set; without a broker the embedded relay runs this step")
    logs.configure(settings.log_level)
    return settings


def _port(default: str) -> socket | None:
    from apps.runtime.port import PortError, open_port

    try:
        return open_port(METRICS, default)
    except PortError as error:
        raise click.UsageError(str(error)) from None


def _run(task: Coroutine[Any, Any, None]) -> None:
    from apps.ingestion.running import CannotRun

    try:
        asyncio.run(task)
    except CannotRun as error:
        raise click.ClickException(str(error)) from None
