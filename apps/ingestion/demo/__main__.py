"""`python -m apps.ingestion.demo`."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import asdict

import click
from rich.console import Console

from apps.ingestion.demo import view
from apps.ingestion.demo.environment import prepared
from apps.ingestion.demo.processes import Processes, ProcessFailed
from apps.ingestion.demo.scenario import Scenario
from pillarbox import ConfigurationError


@click.command()
@click.option("--seconds", type=click.FloatRange(0.1, 3600), default=10, show_default=True, help="How long to upload.")
@click.option("--rate", type=click.FloatRange(0.1, 100), default=5, show_default=True, help="Documents per second.")
@click.option("--json", "as_json", is_flag=True, help="Print only the result, as JSON.")
def demo(seconds: float, rate: float, as_json: bool) -> None:
    """Upload documents, show their states UPLOADED → VALIDATED → ENRICHED, and verify that none was lost.

    By default it uses SQLite in a temporary folder and no broker. DEMO_STORE=postgresql://… creates a temporary
    database on that server, DEMO_TRANSPORT=amqp://… runs both consumers on RabbitMQ. Ctrl-C stops the uploads.
    Exit code 1 if a document was lost or not enriched.
    """
    console = Console(quiet=as_json, highlight=False)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # clean up on SIGTERM, too
    try:
        with (
            prepared(os.environ.get("DEMO_STORE", ""), os.environ.get("DEMO_TRANSPORT", "")) as environment,
            Processes.started(environment) as processes,
            view.shown(console, environment.title) as show,
        ):
            scenario = Scenario(processes, show, seconds=seconds, rate=rate)
            _stop_on_signal(scenario)
            verification = scenario.run()
    except (ConfigurationError, ProcessFailed) as error:
        raise click.ClickException(str(error)) from None
    if as_json:
        click.echo(json.dumps({"ok": verification.ok} | asdict(verification)))
    else:
        view.report(console, verification)
    raise SystemExit(0 if verification.ok else 1)


def _stop_on_signal(scenario: Scenario) -> None:
    """The first signal stops uploading, a second one ends the demo."""

    def stop(*_: object) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler)
        scenario.stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)


if __name__ == "__main__":
    demo()
