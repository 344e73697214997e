"""`pillarbox demo`: run an order service, kill its relay, and verify that nothing was lost."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pillarbox.core.errors import ConfigurationError

if TYPE_CHECKING:
    from pillarbox.ops.demo.run import Outcome, Plan, Show
    from pillarbox.ops.demo.scene import Sabotage, Scene

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@click.command()
@click.option("--seconds", type=float, metavar="N", help="Write orders for N seconds; default: until Ctrl-C.")
@click.option("--events", type=int, metavar="N", help="Write N events; default: until Ctrl-C.")
@click.option("--rate", type=float, default=200, show_default=True, metavar="N", help="Events per second.")
@click.option("--kill", is_flag=True, help="Kill the relay with SIGKILL half-way and start another.")
@click.option(
    "--store", default="", envvar="DEMO_STORE", metavar="URL", help="Use postgresql://… instead of an embedded SQLite."
)
@click.option(
    "--transport", default="", envvar="DEMO_TRANSPORT", metavar="URL", help="Use amqp://… instead of three handlers."
)
@click.option(
    "--sabotage",
    type=click.Choice(["loss", "disorder", "phantom", "repeats"]),
    help="Let a receiver falsify the ledger, to show that the verification fails.",
)
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Work in DIR, a new or empty folder, and keep orders, outbox, ledger and logs.",
)
@click.option("--json", "as_json", is_flag=True, help="Print only the result, as JSON.")
def demo(
    seconds: float | None,
    events: int | None,
    rate: float,
    kill: bool,
    store: str,
    transport: str,
    sabotage: Sabotage | None,
    keep: Path | None,
    as_json: bool,
) -> None:
    """Run an order service with failing handlers and a relay that is killed, then verify that nothing was lost.

    The demo needs no server and leaves no files. Orders and events are written in the same transactions, some of which
    are rolled back. If its packages are installed, the web console is served; the first line has its address. At the
    end the demo compares the orders with the ledger that the handlers wrote, and exits with 1 if an event was lost,
    invented or out of order.

    \b
    Examples:
      pillarbox demo --seconds 10 --kill
      pillarbox demo --events 1000 --sabotage loss
      pillarbox demo --store postgresql://app@127.0.0.1/shop --transport amqp://app@127.0.0.1/
    """
    import asyncio
    from uuid import uuid4

    from pillarbox.ops.demo.run import Plan
    from pillarbox.ops.demo.scene import Scene

    plan = Plan(seconds=seconds, events=events, rate=rate, kill=kill, keep=keep is not None, console=not as_json)
    with _folder(keep) as folder:
        name = f"pillarbox_demo_{uuid4().hex[:8]}"
        scene = Scene(folder=folder, name=name, store=store, transport=transport, sabotage=sabotage)
        with _watched(scene, as_json) as show:
            outcome = asyncio.run(_play(scene, plan, show))
        _print(scene, outcome, as_json)
        if keep is not None:
            click.echo(f"Everything is in {keep}{f' and in schema {name}' if store else ''}.", err=True)
    if not outcome.verdict.ok:
        raise SystemExit(1)


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        import tempfile

        with tempfile.TemporaryDirectory(prefix="pillarbox-demo-") as name:
            yield Path(name)
        return
    keep.mkdir(parents=True, exist_ok=True)
    if any(keep.iterdir()):
        raise ConfigurationError(f"--keep {keep}: the folder is not empty; name an empty or a new folder")
    yield keep.absolute()


async def _play(scene: Scene, plan: Plan, show: Show) -> Outcome:
    import asyncio

    from pillarbox.ops.demo.run import Run

    run = Run(scene, plan, show)
    loop = asyncio.get_running_loop()

    def stop() -> None:
        """Stop writing at the first signal; a second signal ends the process."""
        for number in SIGNALS:
            loop.remove_signal_handler(number)
        run.stop()

    for number in SIGNALS:
        loop.add_signal_handler(number, stop)
    return await run.play()


def _watched(scene: Scene, as_json: bool) -> AbstractContextManager[Show]:
    from pillarbox.ops.demo import showing

    if as_json:
        return showing.nothing()
    console = showing.make_console()
    return showing.live(scene, console) if console.is_terminal else showing.lines(scene, console)


def _print(scene: Scene, outcome: Outcome, as_json: bool) -> None:
    from pillarbox.ops.demo import report, showing

    if as_json:
        click.echo(json.dumps(report.figures(scene, outcome)))
    else:
        showing.make_console().print(report.table(outcome))
