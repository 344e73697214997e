"""The live view on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from pillarbox.admin.overview import Overview
from pillarbox.core.text import plural
from pillarbox.ops.demo.environment import DemoEnvironment
from pillarbox.ops.demo.sampling import ACTIVITY_LINES, HISTORY_LENGTH, Snapshot, Throughput

WIDTH = 100
_BARS = "▁▂▃▄▅▆▇█"
_BEHAVIOUR = {"mailer": "fails at times", "warehouse": "slow", "search": "fast", "consumer": "reads from RabbitMQ"}
_LANES_PER_LINE = 32


def render(environment: DemoEnvironment, snapshot: Snapshot) -> RenderableType:
    """Return the live view; its height does not change."""
    return Panel(
        Group(
            _time(snapshot),
            _table(snapshot),
            _state(snapshot),
            "",
            Text(snapshot.console, style="bold"),
            _activity(snapshot),
        ),
        title="[bold]pillarbox demo[/]",
        subtitle=f"[dim]{environment.title}[/]",
        box=box.ROUNDED,
        border_style="red",
        padding=(1, 2),
        width=WIDTH,
    )


def _time(snapshot: Snapshot) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    phase = "[green]writing[/]" if snapshot.phase == "writing" else "[yellow]draining[/]"
    bar: RenderableType = (
        Text("press Ctrl-C to stop", style="dim")
        if snapshot.progress is None
        else ProgressBar(total=1, completed=snapshot.progress, width=60, complete_style="green")
    )
    grid.add_row(f"{snapshot.elapsed:5.1f} s", phase, bar)
    return grid


def _table(snapshot: Snapshot) -> RenderableType:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True)
    table.add_column("", no_wrap=True)
    table.add_column("", no_wrap=True, style="dim")
    for heading in ("events", "per second"):
        table.add_column(heading, no_wrap=True, justify="right")
    table.add_column("last 10 s", no_wrap=True, min_width=HISTORY_LENGTH)
    for heading in ("retried", "rejected"):
        table.add_column(heading, no_wrap=True, justify="right")
    rolled_back, committed = f"{snapshot.rolled_back:,} rolled back", _throughput(snapshot.committed)
    table.add_row("[bold]order service[/]", rolled_back, *committed, "", "", end_section=True)
    for receiver in snapshot.receivers:
        retried = f"[yellow]{receiver.failed:,}[/]" if receiver.failed else "0"
        rejected = f"[red]{receiver.rejected:,}[/]" if receiver.rejected else "0"
        name, handled = receiver.receiver, _throughput(receiver.handled)
        table.add_row(f"[bold]{name}[/]", _BEHAVIOUR[name], *handled, retried, rejected)
    return table


def _throughput(throughput: Throughput) -> tuple[str, str, Text]:
    return f"{throughput.total:,}", f"{throughput.rate:,.0f}", Text(sparkline(throughput.history), style="cyan")


def sparkline(values: Sequence[float]) -> str:
    """Return one bar per value; the highest value has a full bar."""
    top = max(values, default=0) or 1
    return "".join(_BARS[round(value / top * (len(_BARS) - 1))] for value in values)


def _state(snapshot: Snapshot) -> RenderableType:
    overview = snapshot.overview
    grid = Table.grid(padding=(0, 2))
    lag = f", oldest {overview.oldest:.1f} s" if overview.oldest is not None else ""
    grid.add_row(" [bold]outbox[/]", f"{overview.backlog:,} pending{lag}; {plural(overview.dead, 'dead letter')}")
    grid.add_row(" [bold]lanes[/]", _lanes(overview))
    return grid


def _lanes(overview: Overview) -> Text:
    alive = {relay.id for relay in overview.relays if relay.lease > 0}
    squares = Text()
    for number, lane in enumerate(overview.lanes, 1):
        style = "dim" if lane.owner is None else "green" if lane.owner in alive else "red"
        squares.append("■", style=style)
        if number % _LANES_PER_LINE == 0 and number < len(overview.lanes):
            squares.append("\n")
    owned = sum(lane.owner in alive for lane in overview.lanes)
    epoch = max((lane.epoch for lane in overview.lanes), default=0)
    return squares.append(f"  {owned} of {len(overview.lanes)} owned by a running relay, epoch {epoch}")


def _activity(snapshot: Snapshot) -> RenderableType:
    lines = [f"[dim]{at:5.1f} s[/]  {action}" for at, action in snapshot.activity]
    return "\n".join(lines + [""] * (ACTIVITY_LINES - len(lines)))
