"""`python -m apps.notifications.demo`: see everybody be told, see the mail server break, and see what came of it."""

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
from apps.notifications.demo.play import Outcome, Play
from apps.notifications.demo.stage import Stage, staged
from pillarbox import PillarboxError

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@click.command()
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    metavar="N",
    help="How long business goes on; default: until Ctrl-C.",
)
@click.option(
    "--rate", type=click.FloatRange(0.1, 200), default=10, show_default=True, metavar="N", help="Events per second."
)
@click.option("--json", "as_json", is_flag=True, help="Print only the result, as JSON.")
def demo(seconds: float | None, rate: float, as_json: bool) -> None:
    """Reservations, orders and registrations; everybody is told once by every channel they want.

    It needs no server. DEMO_STORE=postgresql://… and DEMO_TRANSPORT=amqp://… play it on yours, and leave them as they
    were: it makes a database of its own, and queues that must not exist yet. Exit code 1 if anything is missing, there
    twice, or lost on its way.
    """
    logging.basicConfig(handlers=[logging.NullHandler()])  # the table tells it
    try:
        with staged(os.environ.get("DEMO_STORE", ""), os.environ.get("DEMO_TRANSPORT", "")) as stage:
            with _watched(stage, as_json) as show:
                outcome = asyncio.run(_play(stage, seconds, rate, show))
            _tell(stage, outcome, as_json)
    except PillarboxError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
    sys.exit(0 if outcome.verdict.ok else 1)


async def _play(stage: Stage, seconds: float | None, rate: float, show: view.Show) -> Outcome:
    play = Play(stage, seconds=seconds, rate=rate, show=show)
    loop = asyncio.get_running_loop()

    def stop() -> None:
        """The first signal ends the business; a second one ends the process."""
        for number in SIGNALS:
            loop.remove_signal_handler(number)
        play.stop()

    for number in SIGNALS:
        loop.add_signal_handler(number, stop)
    return await play.run()


def _watched(stage: Stage, as_json: bool) -> AbstractContextManager[view.Show]:
    if as_json:
        return view.nothing()
    console = view.make_console()
    return view.live(stage, console) if console.is_terminal else view.lines(stage, console)


def _tell(stage: Stage, outcome: Outcome, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(view.figures_of(stage, outcome)))
    else:
        view.make_console().print(view.report(outcome))


if __name__ == "__main__":
    demo()
