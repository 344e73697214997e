"""`python -m apps.ingestion.demo`."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import asdict

import click
from rich.console import Console

from apps.ingestion.demo import showing
from apps.ingestion.demo.course import Course
from apps.ingestion.demo.place import NoPlace, prepared
from apps.ingestion.demo.system import System, SystemFailed


@click.command()
@click.option("--seconds", type=click.FloatRange(0.1, 3600), default=10, show_default=True, help="Upload for so long.")
@click.option("--rate", type=click.FloatRange(0.1, 100), default=5, show_default=True, help="Documents a second.")
@click.option("--json", "as_json", is_flag=True, help="Print only the result, as JSON.")
def demo(seconds: float, rate: float, as_json: bool) -> None:
    """Documents on their way UPLOADED → VALIDATED → ENRICHED, and whether all of them arrived.

    Embedded: SQLite in a temporary folder, no broker. DEMO_STORE=postgresql://… plays in a database of its own on
    that server, DEMO_TRANSPORT=amqp://… over RabbitMQ with both consumers as processes. Ctrl-C ends the uploading.
    Exit code 1 if a document was lost or did not go all the way.
    """
    console = Console(quiet=as_json, highlight=False)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # whatever ends it, it tidies up
    try:
        with (
            prepared(os.environ.get("DEMO_STORE", ""), os.environ.get("DEMO_TRANSPORT", "")) as place,
            System.started(place) as system,
            showing.shown(console, place.title) as show,
        ):
            course = Course(system, show, seconds=seconds, rate=rate)
            _stop_on_signal(course)
            verdict = course.run()
    except (NoPlace, SystemFailed) as error:
        raise click.ClickException(str(error)) from None
    if as_json:
        click.echo(json.dumps({"ok": verdict.ok} | asdict(verdict)))
    else:
        showing.tell(console, verdict)
    raise SystemExit(0 if verdict.ok else 1)


def _stop_on_signal(course: Course) -> None:
    """The first signal ends the uploading, a second one the demo."""

    def stop(*_: object) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler)
        course.stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)


if __name__ == "__main__":
    demo()
