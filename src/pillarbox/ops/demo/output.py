"""The output while a demo runs: a live view on a terminal, one line per second in a pipe, nothing for scripts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live

from pillarbox.core.text import plural
from pillarbox.ops.demo.environment import DemoEnvironment
from pillarbox.ops.demo.run import ShowSnapshot
from pillarbox.ops.demo.sampling import Snapshot
from pillarbox.ops.demo.view import render

LINE_INTERVAL = 1.0
"""Seconds between two lines."""
PLAIN_WIDTH = 100


def make_console() -> Console:
    """Return standard output, with a fixed width if it is not a terminal."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PLAIN_WIDTH)


@contextmanager
def live_view(environment: DemoEnvironment, console: Console) -> Iterator[ShowSnapshot]:
    """Redraw the live view for each snapshot."""
    with Live(console=console, auto_refresh=False) as screen:
        yield lambda snapshot: screen.update(render(environment, snapshot), refresh=True)


@contextmanager
def progress_lines(environment: DemoEnvironment, console: Console) -> Iterator[ShowSnapshot]:
    """Print one line per second."""
    console.print(environment.title)
    next_at, address = 0.0, ""

    def show(snapshot: Snapshot) -> None:
        nonlocal next_at, address
        if snapshot.console != address:
            address = snapshot.console
            console.print(address, markup=False, soft_wrap=True)
        if snapshot.elapsed >= next_at:
            next_at = snapshot.elapsed + LINE_INTERVAL
            console.print(_line(snapshot), soft_wrap=True)

    yield show


@contextmanager
def silent() -> Iterator[ShowSnapshot]:
    """Show nothing before the result."""
    yield lambda snapshot: None


def _line(snapshot: Snapshot) -> str:
    overview = snapshot.overview
    dead = plural(overview.dead, "dead letter")
    handled = ", ".join(f"{receiver.receiver} {receiver.handled.total:,}" for receiver in snapshot.receivers)
    lag = f" (oldest {overview.oldest:.1f} s)" if overview.oldest is not None else ""
    killed = f"; relay killed {snapshot.kills}×" if snapshot.kills else ""
    return (
        f"{snapshot.elapsed:6.1f} s  {snapshot.phase}: {snapshot.committed.total:,} committed, "
        f"{snapshot.rolled_back:,} rolled back; {handled}; {overview.backlog:,} pending{lag}; {dead}{killed}"
    )
