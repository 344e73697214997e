"""`python -m apps.notifications.demo`: the command line of the demo."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from contextlib import AbstractContextManager

import click

from apps.notifications.demo import view
from apps.notifications.demo.environment import Environment, prepared
from apps.notifications.demo.scenario import Outcome, Scenario
from pillarbox import PillarboxError

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@click.command()
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    metavar="N",
    help="How long to record events; default: until Ctrl-C.",
)
@click.option(
    "--rate", type=click.FloatRange(0.1, 200), default=10, show_default=True, metavar="N", help="Events per second."
)
@click.option("--json", "as_json", is_flag=True, help="Print only the result, as JSON.")
def demo(seconds: float | None, rate: float, as_json: bool) -> None:
    """Notify users of reservations, orders and registrations, and verify that each notification is delivered once.

    It needs no server. DEMO_STORE=postgresql://… and DEMO_TRANSPORT=amqp://… run it on servers: it creates a temporary
    database, and queues that must not exist yet, and removes both. Exit code 1 if a notification or a delivery is
    missing or duplicated.
    """
    logging.basicConfig(handlers=[logging.NullHandler()])  # the table shows it
    try:
        with prepared(os.environ.get("DEMO_STORE", ""), os.environ.get("DEMO_TRANSPORT", "")) as environment:
            with _display(environment, as_json) as show:
                outcome = asyncio.run(_run(environment, seconds, rate, show))
            _report(environment, outcome, as_json)
    except PillarboxError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
    sys.exit(0 if outcome.verification.ok else 1)


async def _run(environment: Environment, seconds: float | None, rate: float, show: view.Show) -> Outcome:
    scenario = Scenario(environment, seconds=seconds, rate=rate, show=show)
    loop = asyncio.get_running_loop()

    def stop() -> None:
        """The first signal stops recording; a second one ends the process."""
        for number in SIGNALS:
            loop.remove_signal_handler(number)
        scenario.stop()

    for number in SIGNALS:
        loop.add_signal_handler(number, stop)
    return await scenario.run()


def _display(environment: Environment, as_json: bool) -> AbstractContextManager[view.Show]:
    if as_json:
        return view.nothing()
    console = view.make_console()
    return view.live(environment, console) if console.is_terminal else view.lines(environment, console)


def _report(environment: Environment, outcome: Outcome, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(view.result_of(environment, outcome)))
    else:
        view.make_console().print(view.report(outcome))


if __name__ == "__main__":
    demo()
