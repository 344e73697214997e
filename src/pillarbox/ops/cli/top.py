"""`pillarbox top`: rates, lag, lanes and destinations, again and again."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import click

from pillarbox.core.overview import COUNTED
from pillarbox.ops.cli.output import as_json, clean, number, print_json, span
from pillarbox.ops.cli.parameters import age

if TYPE_CHECKING:
    from rich.console import Group

    from pillarbox.core.store import Store
    from pillarbox.ops.figures import DestinationFigures, Frame

_COLOURS = {"flowing": "green", "held up": "yellow", "stopped": "red"}
_COLUMNS = ["destination", "state", "sent/s", "retried/s", "dead/s", "half within", "99 % within", "last error"]


@click.command()
@click.option("--interval", type=age, default="2s", show_default=True, metavar="DURATION", help="Between two looks.")
@click.option("--once", is_flag=True, help="One frame, after one interval, and no more.")
@as_json
def top(interval: float, once: bool, as_json: bool) -> None:
    """Watch rates, lag, lanes and destinations until Ctrl-C. With --json, a line for each look.

    What relays carried is the average of the last minute, from their own samples every ten seconds; what was recorded
    and how the backlog changes is the difference of two looks.

    \b
    Examples:
      pillarbox top
      pillarbox top --once
      pillarbox top --interval 10s --json
    """
    from pillarbox.ops.cli.working import with_shared_store

    if interval <= 0:
        raise click.BadParameter("it must be longer than nothing", param_hint="--interval")

    async def watch(store: Store) -> None:
        frames = _frames(store, interval)
        first = await anext(frames)
        if once:
            _show(await anext(frames), as_json=as_json)
        elif as_json or not sys.stdout.isatty():
            _show(first, as_json=as_json)
            async for frame in frames:
                _show(frame, as_json=as_json)
        else:
            await _live(first, frames)

    with_shared_store(watch)


async def _frames(store: Store, interval: float) -> AsyncIterator[Frame]:
    from pillarbox.core.clock import SystemClock
    from pillarbox.ops.figures import Watch

    looking = Watch(store, clock=SystemClock().monotonic)
    while True:
        yield await looking.look()
        await asyncio.sleep(interval)


async def _live(first: Frame, frames: AsyncIterator[Frame]) -> None:
    from rich.live import Live

    with Live(_drawn(first), auto_refresh=False, screen=True) as screen:
        async for frame in frames:
            screen.update(_drawn(frame), refresh=True)


def _show(frame: Frame, *, as_json: bool) -> None:
    if as_json:
        print_json(_figures(frame))
    elif sys.stdout.isatty():
        from rich.console import Console

        Console().print(_drawn(frame))
    else:
        for line in _lines(frame):
            click.echo(line)


def _drawn(frame: Frame) -> Group:
    """A frame for a terminal."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    head, *figures = _head(frame)
    shown: list[Text | Table] = [Text(head, style=_COLOURS[frame.flow.state]), *(Text(line) for line in figures)]
    for columns, rows in ((_COLUMNS, _destinations(frame)), (["relay", "host", "lanes", "lease"], _relays(frame))):
        if rows:
            table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
            for column in columns:
                table.add_column(
                    column, justify="left" if column in ("destination", "relay", "last error") else "right"
                )
            for row in rows:
                table.add_row(*(Text(cell) for cell in row))
            shown.append(table)
    return Group(*shown)


def _lines(frame: Frame) -> list[str]:
    """A frame for a pipe."""
    tables = ["\t".join(row) for row in (_COLUMNS, *_destinations(frame))] if frame.destinations else []
    relays = ["\t".join(row) for row in (["relay", "host", "lanes", "lease"], *_relays(frame))] if frame.relays else []
    return [*_head(frame), *tables, *relays]


def _head(frame: Frame) -> list[str]:
    figures = [
        f"{_waiting(frame)} waiting",
        f"the oldest for {span(frame.oldest)}" if frame.oldest is not None else "",
        f"{number(frame.dead, most=COUNTED)} dead",
        f"{frame.recorded:,.1f} recorded/s" if frame.recorded is not None else "",
        f"backlog {frame.growth:+,.1f}/s" if frame.growth is not None else "",
        f"{frame.lanes - frame.orphans} of {frame.lanes} lanes at work",
    ]
    why = f": {clean(frame.flow.why)}" if frame.flow.why else ""
    return [f"{frame.flow.state}{why}", ", ".join(figure for figure in figures if figure)]


def _waiting(frame: Frame) -> str:
    if frame.exact:
        return number(frame.backlog)
    # A store that does not estimate stops counting.
    return number(frame.backlog, most=COUNTED) if frame.backlog == COUNTED + 1 else f"about {number(frame.backlog)}"


def _destinations(frame: Frame) -> list[list[str]]:
    return [
        [
            clean(one.view.name),
            one.view.state,
            f"{one.published:,.1f}",
            f"{one.retried:,.1f}",
            f"{one.dead:,.1f}",
            _lag(one.lag),
            _lag(one.slow),
            clean(one.view.last_error),
        ]
        for one in frame.destinations
    ]


def _lag(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return "longer" if seconds == float("inf") else f"{seconds * 1000:g} ms" if seconds < 1 else span(seconds)


def _relays(frame: Frame) -> list[list[str]]:
    return [
        [clean(one.name), clean(one.host), str(one.lanes), f"{one.lease:.1f} s" if one.lease > 0 else "ended"]
        for one in frame.relays
    ]


def _figures(frame: Frame) -> dict[str, object]:
    """A frame for scripts."""
    return {
        "state": frame.flow.state,
        "why": frame.flow.why,
        "backlog": frame.backlog,
        "exact": frame.exact,
        "oldest_seconds": _rounded(frame.oldest),
        "dead": frame.dead,
        "recorded_per_second": _rounded(frame.recorded),
        "backlog_per_second": _rounded(frame.growth),
        "lanes": frame.lanes,
        "orphans": frame.orphans,
        "destinations": [_destination(one) for one in frame.destinations],
        "relays": [
            {"name": one.name, "host": one.host, "lanes": one.lanes, "lease_seconds": _rounded(one.lease)}
            for one in frame.relays
        ],
    }


def _destination(one: DestinationFigures) -> dict[str, object]:
    return {
        "name": one.view.name,
        "state": one.view.state,
        "published_per_second": _rounded(one.published),
        "retried_per_second": _rounded(one.retried),
        "dead_per_second": _rounded(one.dead),
        "lag_seconds": _rounded(one.lag),
        "slow_seconds": _rounded(one.slow),
        "last_error": one.view.last_error,
    }


def _rounded(value: float | None) -> float | None:
    """None also for what is longer than anybody told apart: JSON has no infinity."""
    return None if value is None or value == float("inf") else round(value, 3)
