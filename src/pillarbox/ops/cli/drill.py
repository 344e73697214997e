"""`pillarbox drill`: kill, freeze and drain relays on the user's own servers, and compare independent ledgers."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pillarbox.core.errors import CommandError, ConfigurationError
from pillarbox.ops.cli.context import current_invocation, log_to_stderr
from pillarbox.ops.cli.exits import FAILURE, VOID, confirm, yes_option
from pillarbox.ops.cli.output import print_json
from pillarbox.ops.cli.signals import SIGNALS
from pillarbox.ops.cli.store_access import refuse_memory

if TYPE_CHECKING:
    from pillarbox.ops.drill.options import DrillOptions
    from pillarbox.ops.drill.result import DrillResult
    from pillarbox.ops.drill.run import DrillRun
    from pillarbox.ops.drill.sampling import ShowDrill
    from pillarbox.ops.drill.target import DrillTarget

KINDS = (
    "kill",
    "freeze",
    "stale-settlement",
    "blocked-settlement",
    "drain",
    "kill-consumer",
    "unroutable",
    "cut-database",
    "cut-broker",
)


HANGUP = signal.SIGHUP
"""The terminal was closed."""


@click.command()
@click.option(
    "--seconds", type=float, default=60, show_default=True, metavar="N", help="Write under faults for N seconds."
)
@click.option("--rate", type=float, default=300, show_default=True, metavar="N", help="Events per second, at most.")
@click.option("--relays", type=int, default=3, show_default=True, metavar="N", help="Relay processes, at least 2.")
@click.option(
    "--interval",
    type=float,
    default=1,
    show_default=True,
    metavar="N",
    help="Mean seconds from the recovery of one fault to the next one.",
)
@click.option("--seed", type=int, metavar="N", help="Repeat the fault schedule of a run; default: a random seed.")
@click.option(
    "--fault",
    "faults",
    type=click.Choice(KINDS),
    multiple=True,
    help="Only this fault; repeatable. Default: all that store and transport support.",
)
@click.option("--transport", default="", metavar="NAME", help="Broker transport of the settings; default: the first.")
@click.option("--cut-database", default="", metavar="CMD", help="Shell command that cuts off the database.")
@click.option("--restore-database", default="", metavar="CMD", help="Shell command that restores it, and returns then.")
@click.option("--cut-broker", default="", metavar="CMD", help="Shell command that cuts off the broker.")
@click.option("--restore-broker", default="", metavar="CMD", help="Shell command that restores it, and returns then.")
@click.option(
    "--report", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write the report as JSON."
)
@click.option(
    "--html", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write the report as HTML."
)
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Keep ledgers and logs in DIR, a new or empty folder.",
)
@yes_option
@click.option("--json", "as_json", is_flag=True, help="Print only the report, as JSON.")
def drill(
    seconds: float,
    rate: float,
    relays: int,
    interval: float,
    seed: int | None,
    faults: tuple[Any, ...],
    transport: str,
    cut_database: str,
    restore_database: str,
    cut_broker: str,
    restore_broker: str,
    report: Path | None,
    html: Path | None,
    keep: Path | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Kill, freeze and drain relays under load on your store and transport, then verify every guarantee.

    The drill creates its own tables and its own queue, with a random suffix, and removes them at the end, also after
    Ctrl-C. It never reads or changes your tables, queues and handlers, but it loads both servers. Writers record events
    in transactions, some of which are rolled back; a consumer with the inbox applies one effect per event. Writers and
    readers keep ledgers, which are compared at the end. Without a broker in the settings, events go to a handler.

    Exits with 0 if every guarantee held, with 1 if one was violated, and with 5 if no fault took effect.

    \b
    Examples:
      pillarbox drill --seconds 30 --yes
      pillarbox drill --seed 4711 --report drill.json --html drill.html
      pillarbox drill --cut-broker "docker pause rabbitmq" --restore-broker "docker unpause rabbitmq"
    """
    from pillarbox.ops.drill.objects import describe_objects
    from pillarbox.ops.drill.options import DrillOptions
    from pillarbox.ops.drill.run import DrillRun
    from pillarbox.ops.drill.target import DrillTarget, SettingsSource, new_name

    invocation = current_invocation()
    refuse_memory(invocation.settings)
    log_to_stderr()
    source = SettingsSource(config=invocation.config, flags=invocation.flags, spelt=invocation.spelt)
    options = DrillOptions(
        seed=secrets.randbelow(1 << 32) if seed is None else seed,
        seconds=seconds,
        rate=rate,
        relays=relays,
        interval=interval,
        kinds=faults,
        cut_database=cut_database,
        restore_database=restore_database,
        cut_broker=cut_broker,
        restore_broker=restore_broker,
    )
    for file in (report, html):
        if file is not None:
            _check_folder(file)
    target = DrillTarget.of(source.load(), name=new_name(), transport=transport)
    if not (as_json and yes):
        _announce(describe_objects(target), options)
    confirm("Run the drill?", yes=yes)
    if as_json:
        click.echo(f"pillarbox: --seed {options.seed}", err=True)  # also if there will be no report
    with _folder(keep) as folder, _progress(target, options, as_json) as show:
        result = asyncio.run(_run(lambda: DrillRun(source, target, options, folder=folder, show=show)))
    _publish(result, report=report, html=html, as_json=as_json)
    if result.conclusion != "passed":
        raise SystemExit(FAILURE if result.conclusion == "failed" else VOID)


def _check_folder(file: Path) -> None:
    """Refuse a file that cannot be written, before the drill and not after it."""
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise ConfigurationError(f"{file} cannot be written: name a file in a folder that exists and is writable")


def _announce(objects: list[str], options: DrillOptions) -> None:
    click.echo("The drill creates, and removes at the end:", err=True)
    for line in objects:
        click.echo(f"  {line}", err=True)
    for hooks in (options.database_hooks, options.broker_hooks):
        if hooks.given:
            click.echo(f"It cuts off the {hooks.what} several times, for everyone: {hooks.cut}", err=True)


async def _run(make: Any) -> DrillResult:
    """Run the drill. The first signal ends the load, the second one or a hangup the drill; its objects are removed."""
    run: DrillRun = make()
    task = asyncio.create_task(run.run())
    loop = asyncio.get_running_loop()

    def stop() -> None:
        click.echo("pillarbox: ending the load; a second Ctrl-C ends the drill without a report", err=True)
        run.stop()
        for number in SIGNALS:
            loop.add_signal_handler(number, cancel)

    def cancel() -> None:
        for number in (*SIGNALS, HANGUP):
            loop.add_signal_handler(number, wait)
        task.cancel()

    def wait() -> None:
        click.echo("pillarbox: removing what the drill created", err=True)

    for number in SIGNALS:
        loop.add_signal_handler(number, stop)
    loop.add_signal_handler(HANGUP, cancel)  # the report would not be seen
    try:
        return await task
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        import tempfile

        with tempfile.TemporaryDirectory(prefix="pillarbox-drill-", ignore_cleanup_errors=True) as name:
            yield Path(name)
        return
    keep.mkdir(parents=True, exist_ok=True)
    if any(keep.iterdir()):
        raise ConfigurationError(f"--keep {keep}: the folder is not empty; name an empty or a new folder")
    yield keep.absolute()


def _progress(target: DrillTarget, options: DrillOptions, as_json: bool) -> AbstractContextManager[ShowDrill]:
    from rich.console import Console

    from pillarbox.ops.drill import output

    if as_json:
        return output.silent()
    title = f"{target.engine} → {options.relays} relays → {target.broker}, seed {options.seed}"
    console = Console(highlight=False)
    return output.live_view(title, console) if console.is_terminal else output.progress_lines(title, console)


def _publish(result: DrillResult, *, report: Path | None, html: Path | None, as_json: bool) -> None:
    from rich.console import Console

    from pillarbox.ops.drill.html import page
    from pillarbox.ops.drill.report import table

    fields = result.as_json()
    if as_json:
        print_json(fields)
    else:
        console = Console(highlight=False)
        (console if console.is_terminal else Console(highlight=False, width=100)).print(table(fields))
    failed: list[str] = []
    for file, text in ((report, json.dumps(fields, indent=1) + "\n"), (html, page(fields))):
        try:
            if file is not None:
                file.write_text(text, encoding="utf-8")
        except OSError as error:
            failed.append(f"{file} could not be written: {error.strerror}")
    if failed:
        raise CommandError("; ".join(failed))
