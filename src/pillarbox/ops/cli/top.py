"""`pillarbox top`: rates, lag, lanes and destinations, again and again."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, NamedTuple

import click

from pillarbox.core.errors import StoreUnavailableError
from pillarbox.core.statistics import COUNTED
from pillarbox.ops.cli.output import as_json, clean, number, print_json, span
from pillarbox.ops.cli.parameters import age
from pillarbox.ops.cli.screen import Sheet, drawn, shares

if TYPE_CHECKING:
    from rich.console import Console, Group

    from pillarbox.admin.admin import AdminStore
    from pillarbox.ops.figures import DestinationFigures, Frame

_COLOURS = {"flowing": "green", "degraded": "yellow", "stopped": "red"}
_COLUMNS = ["destination", "state", "sent/s", "retried/s", "dead/s", "half within", "99 % within", "last error"]
_RELAYS = ["relay", "host", "lanes", "lease"]
_NO_ROUTE = "(no route yet)"
_UNKNOWN = "\N{EN DASH}"
"""In place of a figure that nobody has told yet."""


@click.command()
@click.option("--interval", type=age, default="2s", show_default=True, metavar="DURATION", help="Between two looks.")
@click.option("--once", is_flag=True, help="One frame, after one interval, and no more.")
@as_json
def top(interval: float, once: bool, as_json: bool) -> None:
    """Watch rates, lag, lanes and destinations until Ctrl-C. With --json, a line for each look.

    What relays carried is the average of the last minute, from their own samples every ten seconds; what was recorded
    and how the backlog changes is the difference of two looks. While the store is away, the last figures stay.

    \b
    Examples:
      pillarbox top
      pillarbox top --once
      pillarbox top --interval 10s --json
    """
    from pillarbox.ops.cli.working import with_shared_store

    if interval <= 0:
        raise click.BadParameter("it must be longer than nothing", param_hint="--interval")

    async def watch(store: AdminStore) -> None:
        sights = _sights(store, interval)
        first = await anext(sights)
        if once:
            second = await anext(sights)
            if second.away is not None:
                raise second.away
            _show(second, as_json=as_json)
        elif as_json or not sys.stdout.isatty():
            _show(first, as_json=as_json)
            async for sight in sights:
                _show(sight, as_json=as_json)
        else:
            await _live(first, sights)

    with_shared_store(watch)


class Sight(NamedTuple):
    """What is shown."""

    frame: Frame
    away: StoreUnavailableError | None
    """Why the store did not answer: then these are the last figures."""


async def _sights(store: AdminStore, interval: float) -> AsyncIterator[Sight]:
    """One after another; once a look succeeded, it goes on however long the store is away."""
    from pillarbox.core.clock import SystemClock, seconds
    from pillarbox.ops.cli.context import current_settings
    from pillarbox.ops.figures import Watch

    allowed = seconds(current_settings().console.slo)
    looking = Watch(store, clock=SystemClock().monotonic, allowed=allowed)
    sight = Sight(await looking.look(), None)
    while True:
        yield sight
        await asyncio.sleep(interval)
        try:
            sight = Sight(await looking.look(), None)
        except StoreUnavailableError as error:
            sight = Sight(sight.frame, error)


async def _live(first: Sight, sights: AsyncIterator[Sight]) -> None:
    from rich.console import Console
    from rich.live import Live

    console = Console()
    with Live(_fitted(first, console), console=console, auto_refresh=False, screen=True) as screen:
        async for sight in sights:
            screen.update(_fitted(sight, console), refresh=True)


def _fitted(sight: Sight, console: Console) -> Group:
    return _drawn(sight, width=console.width, height=console.height)


def _show(sight: Sight, *, as_json: bool) -> None:
    if as_json:
        away = None if sight.away is None else str(sight.away)
        print_json(_figures(sight.frame) | {"away": away})
    elif sys.stdout.isatty():
        from rich.console import Console

        console = Console()
        console.print(_drawn(sight, width=console.width))
    else:
        for line in _lines(sight):
            click.echo(line)


def _drawn(sight: Sight, *, width: int, height: int | None = None) -> Group:
    """A frame for a terminal of this width, and of this height if it has to fit."""
    from rich.console import Group
    from rich.text import Text

    frame = sight.frame
    head, *figures = _head(frame)
    lines = [Text(line, style="red") for line in _away(sight)]
    lines += [Text(head, style=_COLOURS[frame.flow.state]), *(Text(line) for line in figures)]
    sheets = [sheet for sheet in (_destinations_sheet(frame), _relays_sheet(frame)) if sheet.rows]
    above = sum(1 + line.cell_len // width for line in lines)
    most = [None] * len(sheets) if height is None else shares(height - above, *sheets)
    tables = [part for sheet, rows in zip(sheets, most, strict=True) for part in drawn(sheet, width=width, most=rows)]
    return Group(*lines, *tables)


def _destinations_sheet(frame: Frame) -> Sheet:
    spare = ["99 % within", "half within", "dead/s", "retried/s"]
    return Sheet(_COLUMNS, _destinations(frame), names=["destination"], spare=spare, cut="last error")


def _relays_sheet(frame: Frame) -> Sheet:
    return Sheet(_RELAYS, _relays(frame), names=["relay"], spare=["host", "lease"])


def _lines(sight: Sight) -> list[str]:
    """A frame for a pipe."""
    frame = sight.frame
    tables = ["\t".join(row) for row in (_COLUMNS, *_destinations(frame))] if frame.destinations else []
    relays = ["\t".join(row) for row in (_RELAYS, *_relays(frame))] if frame.relays else []
    return [*_away(sight), *_head(frame), *tables, *relays]


def _away(sight: Sight) -> list[str]:
    return [] if sight.away is None else [f"the store is away, these are the last figures: {clean(sight.away)}"]


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
            clean(one.view.name) or _NO_ROUTE,
            one.view.state,
            _pace(one.published),
            _pace(one.retried),
            _pace(one.dead),
            _lag(one.lag),
            _lag(one.slow),
            clean(one.view.last_error),
        ]
        for one in frame.destinations
    ]


def _pace(per_second: float | None) -> str:
    return _UNKNOWN if per_second is None else f"{per_second:,.1f}"


def _lag(seconds: float | None) -> str:
    if seconds is None:
        return _UNKNOWN
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
