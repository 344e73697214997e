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
    from pillarbox.ops.demo.environment import DemoEnvironment, Fault
    from pillarbox.ops.demo.run import DemoOptions, DemoResult, ShowSnapshot

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
    "--inject",
    type=click.Choice(["loss", "reordering", "phantom", "duplicates"]),
    help="Inject a fault into the receiver's records, to show that the verification detects it.",
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
    inject: Fault | None,
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
      pillarbox demo --events 1000 --inject loss
      pillarbox demo --store postgresql://app@127.0.0.1/shop --transport amqp://app@127.0.0.1/
    """
    import asyncio
    from uuid import uuid4

    from pillarbox.ops.demo.environment import DemoEnvironment
    from pillarbox.ops.demo.run import DemoOptions

    options = DemoOptions(
        seconds=seconds, events=events, rate=rate, kill=kill, keep=keep is not None, console=not as_json
    )
    with _folder(keep) as folder:
        name = f"pillarbox_demo_{uuid4().hex[:8]}"
        environment = DemoEnvironment(folder=folder, name=name, store=store, transport=transport, inject=inject)
        with _progress(environment, as_json) as show:
            result = asyncio.run(_run(environment, options, show))
        _print(environment, result, as_json)
        if keep is not None:
            click.echo(f"The data is in {keep}{f' and in schema {name}' if store else ''}.", err=True)
    if not result.verification.ok:
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


async def _run(environment: DemoEnvironment, options: DemoOptions, show: ShowSnapshot) -> DemoResult:
    import asyncio

    from pillarbox.ops.demo.run import DemoRun

    run = DemoRun(environment, options, show)
    loop = asyncio.get_running_loop()

    def stop() -> None:
        """Stop writing at the first signal; a second signal ends the process."""
        for number in SIGNALS:
            loop.remove_signal_handler(number)
        run.stop()

    for number in SIGNALS:
        loop.add_signal_handler(number, stop)
    return await run.run()


def _progress(environment: DemoEnvironment, as_json: bool) -> AbstractContextManager[ShowSnapshot]:
    from pillarbox.ops.demo import output

    if as_json:
        return output.silent()
    console = output.make_console()
    return (
        output.live_view(environment, console) if console.is_terminal else output.progress_lines(environment, console)
    )


def _print(environment: DemoEnvironment, result: DemoResult, as_json: bool) -> None:
    from pillarbox.ops.demo import output, report

    if as_json:
        click.echo(json.dumps(report.as_json(environment, result)))
    else:
        output.make_console().print(report.table(result))
