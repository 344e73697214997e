"""The output while a drill runs: a live view on a terminal, lines in a pipe, nothing for scripts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table

from pillarbox.ops.drill.sampling import ACTIVITY_LINES, DrillSnapshot, RelayState, ShowDrill
from pillarbox.ops.drill.schedule import KINDS

WIDTH = 100
LINE_INTERVAL = 5.0
"""Seconds between two lines."""
RELAY_LINES = 4


@contextmanager
def live_view(title: str, console: Console) -> Iterator[ShowDrill]:
    """Redraw the live view for each snapshot."""
    with Live(console=console, auto_refresh=False) as screen:
        yield lambda snapshot: screen.update(render(title, snapshot), refresh=True)


@contextmanager
def progress_lines(title: str, console: Console) -> Iterator[ShowDrill]:
    """Print each fault, and a line every few seconds."""
    console.print(title, markup=False, soft_wrap=True)
    next_at, shown = 0.0, -1.0

    def show(snapshot: DrillSnapshot) -> None:
        nonlocal next_at, shown
        for at, text in snapshot.activity:
            if at > shown:
                shown = at
                console.print(f"{at:6.1f} s  {text}", markup=False, soft_wrap=True)
        if snapshot.elapsed >= next_at:
            next_at = snapshot.elapsed + LINE_INTERVAL
            console.print(f"{snapshot.elapsed:6.1f} s  {_counts(snapshot)}", markup=False, soft_wrap=True)

    yield show


@contextmanager
def silent() -> Iterator[ShowDrill]:
    """Show nothing before the result."""
    yield lambda snapshot: None


def render(title: str, snapshot: DrillSnapshot) -> RenderableType:
    """Return the live view; its height does not change."""
    progress = min(1.0, snapshot.elapsed / snapshot.seconds)
    bar = ProgressBar(total=1, completed=progress, width=50, complete_style="green")
    head = Table.grid(padding=(0, 2))
    head.add_row(f"{snapshot.elapsed:6.1f} s", f"[bold]{snapshot.phase}[/]", bar)
    relays = [_relay(relay) for relay in snapshot.relays][:RELAY_LINES]
    relays += [""] * (RELAY_LINES - len(relays))
    activity = [f"[dim]{at:6.1f} s[/]  {text}" for at, text in snapshot.activity]
    activity += [""] * (ACTIVITY_LINES - len(activity))
    faults = "  ".join(
        f"{kind} {snapshot.effective[kind]}/{snapshot.executed[kind]}" for kind in KINDS if snapshot.executed[kind]
    )
    return Panel(
        Group(head, "", _counts(snapshot), "", *relays, "", f"[bold]faults[/] {faults or 'none yet'}", "", *activity),
        title="[bold]pillarbox drill[/]",
        subtitle=f"[dim]{title}[/]",
        box=box.ROUNDED,
        border_style="red",
        padding=(1, 2),
        width=WIDTH,
    )


def _relay(relay: RelayState) -> str:
    state = "[yellow]frozen[/]" if relay.frozen else "[green]running[/]"
    return f"[bold]{relay.name}[/]  {state}  {relay.lanes} lanes, {relay.in_flight} in flight"


def _counts(snapshot: DrillSnapshot) -> str:
    pending = "store unavailable" if snapshot.pending is None else f"{snapshot.pending:,} pending"
    effective = snapshot.effective.total()
    return (
        f"{snapshot.phase}: {snapshot.committed:,} committed, {snapshot.received:,} received, {pending}; "
        f"{effective} faults took effect"
    )
