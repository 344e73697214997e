"""`python -m apps.ingestion`: one command per process of the system."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import urllib.request
from collections.abc import Coroutine
from typing import Any

import click

from apps.ingestion.settings import Settings, SettingsError


@click.group()
def main() -> None:
    """The document ingestion service. Everything is set by INGESTION_… variables; see the README."""


@main.command()
@click.option("--wait", type=click.FloatRange(0, 3600), default=0, metavar="SECONDS", help="Wait for the database.")
def migrate(wait: float) -> None:
    """Bring the database up to date; twice is as good as once."""
    from apps.ingestion.running import bring_up_to_date

    _run(bring_up_to_date(_settings(), wait=wait))
    click.echo("the database is up to date")


@main.command()
def serve() -> None:
    """The HTTP API, with the relay inside unless INGESTION_RELAY says otherwise. SIGTERM drains."""
    import uvicorn

    from apps.ingestion.api.app import create_app
    from apps.ingestion.running import check

    settings = _settings()
    _run(check(settings))
    # What uvicorn does after it has drained: raise the signal once more. It was served, so this is a good end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    uvicorn.run(
        create_app(settings), host=settings.host, port=settings.port, log_config=None, timeout_graceful_shutdown=10
    )


@main.command()
def validate() -> None:
    """validation-service: works off document.uploaded.q until SIGTERM."""
    from apps.ingestion.consumers.validation import validation
    from apps.ingestion.running import consume
    from apps.ingestion.topology import UPLOADED_QUEUE

    _run(consume(_settings(broker=True), UPLOADED_QUEUE, validation))


@main.command()
def enrich() -> None:
    """enrichment-service: works off document.validated.q until SIGTERM."""
    from apps.ingestion.consumers.enrichment import enrichment
    from apps.ingestion.running import consume
    from apps.ingestion.topology import VALIDATED_QUEUE

    _run(consume(_settings(broker=True), VALIDATED_QUEUE, enrichment))


@main.command()
def probe() -> None:
    """Whether the service on this machine answers; for the container's health check."""
    settings = _settings()
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104 - nothing is bound
    address = f"[{host}]:{settings.port}" if ":" in host else f"{host}:{settings.port}"
    try:
        with urllib.request.urlopen(f"http://{address}/health/live", timeout=3):
            return
    except OSError as error:
        raise click.ClickException(f"no answer from {address}: {error}") from None


def _settings(*, broker: bool = False) -> Settings:
    from apps.ingestion import logs

    try:
        settings = Settings.read(os.environ)
    except SettingsError as error:
        raise click.UsageError(str(error)) from None
    if broker and not settings.transport:
        raise click.UsageError("INGESTION_TRANSPORT is not set; without a broker the service itself does this step")
    logs.configure(settings.log_level)
    return settings


def _run(errand: Coroutine[Any, Any, None]) -> None:
    from apps.ingestion.running import CannotRun

    try:
        asyncio.run(errand)
    except CannotRun as error:
        raise click.ClickException(str(error)) from None
