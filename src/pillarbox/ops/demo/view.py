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
from pillarbox.ops.demo.scene import Scene
from pillarbox.ops.demo.watching import HAPPENINGS, PULSES, Figures, Pace

WIDTH = 100
_BARS = "▁▂▃▄▅▆▇█"
_NATURE = {"mailer": "fails at times", "warehouse": "slow", "search": "quick", "consumer": "behind RabbitMQ"}
_LANES_IN_A_ROW = 32


def render(scene: Scene, figures: Figures) -> RenderableType:
    """Everything at a glance, always of the same height."""
    return Panel(
        Group(
            _time(figures),
            _paces(figures),
            _state(figures),
            "",
            Text(figures.window, style="bold"),
            _happenings(figures),
        ),
        title="[bold]pillarbox demo[/]",
        subtitle=f"[dim]{scene.title}[/]",
        box=box.ROUNDED,
        border_style="red",
        padding=(1, 2),
        width=WIDTH,
    )


def _time(figures: Figures) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    what = "[green]writing[/]" if figures.phase == "writing" else "[yellow]draining[/]"
    bar: RenderableType = (
        Text("Ctrl-C ends it", style="dim")
        if figures.done is None
        else ProgressBar(total=1, completed=figures.done, width=60, complete_style="green")
    )
    grid.add_row(f"{figures.elapsed:5.1f} s", what, bar)
    return grid


def _paces(figures: Figures) -> RenderableType:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True)
    table.add_column("", no_wrap=True)
    table.add_column("", no_wrap=True, style="dim")
    for heading in ("events", "per second"):
        table.add_column(heading, no_wrap=True, justify="right")
    table.add_column("last 10 s", no_wrap=True, min_width=PULSES)
    for heading in ("retried", "refused"):
        table.add_column(heading, no_wrap=True, justify="right")
    shop = figures.committed
    table.add_row(
        "[bold]order service[/]", f"{figures.rolled_back:,} rolled back", *_pace(shop), "", "", end_section=True
    )
    for tally in figures.tallies:
        again = f"[yellow]{tally.failed:,}[/]" if tally.failed else "0"
        refused = f"[red]{tally.refused:,}[/]" if tally.refused else "0"
        table.add_row(f"[bold]{tally.receiver}[/]", _NATURE[tally.receiver], *_pace(tally.handled), again, refused)
    return table


def _pace(pace: Pace) -> tuple[str, str, Text]:
    return f"{pace.total:,}", f"{pace.rate:,.0f}", Text(sparkline(pace.lately), style="cyan")


def sparkline(values: Sequence[float]) -> str:
    """One bar for each value, the highest one full."""
    top = max(values, default=0) or 1
    return "".join(_BARS[round(value / top * (len(_BARS) - 1))] for value in values)


def _state(figures: Figures) -> RenderableType:
    seen = figures.overview
    grid = Table.grid(padding=(0, 2))
    lag = f", the oldest for {seen.oldest:.1f} s" if seen.oldest is not None else ""
    grid.add_row(" [bold]outbox[/]", f"{seen.backlog:,} pending{lag}; {plural(seen.dead, 'dead letter')}")
    grid.add_row(" [bold]lanes[/]", _lanes(seen))
    return grid


def _lanes(seen: Overview) -> Text:
    alive = {relay.id for relay in seen.relays if relay.lease > 0}
    shown = Text()
    for number, lane in enumerate(seen.lanes, 1):
        style = "dim" if lane.owner is None else "green" if lane.owner in alive else "red"
        shown.append("■", style=style)
        if number % _LANES_IN_A_ROW == 0 and number < len(seen.lanes):
            shown.append("\n")
    worked = sum(lane.owner in alive for lane in seen.lanes)
    epoch = max((lane.epoch for lane in seen.lanes), default=0)
    return shown.append(f"  {worked} of {len(seen.lanes)} owned by a running relay, epoch {epoch}")


def _happenings(figures: Figures) -> RenderableType:
    lines = [f"[dim]{when:5.1f} s[/]  {what}" for when, what in figures.happenings]
    return "\n".join(lines + [""] * (HAPPENINGS - len(lines)))
