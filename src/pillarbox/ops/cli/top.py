"""`pillarbox top`: rates, lag, lanes and destinations, refreshed periodically."""

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
    from pillarbox.ops.top_statistics import DestinationStatistics, Frame

_COLOURS = {"flowing": "green", "degraded": "yellow", "stopped": "red"}
_COLUMNS = ["destination", "state", "delivered/s", "retried/s", "dead/s", "median lag", "p99 lag", "last error"]
_RELAYS = ["relay", "host", "lanes", "lease"]
_NO_ROUTE = "(no route yet)"
_UNKNOWN = "\N{EN DASH}"
"""In place of a value that no relay has reported yet."""


@click.command()
@click.option("--interval", type=age, default="2s", show_default=True, metavar="DURATION", help="Time between queries.")
@click.option("--once", is_flag=True, help="Print one frame, after one interval, and exit.")
@as_json
def top(interval: float, once: bool, as_json: bool) -> None:
    """Show rates, lag, lanes and destinations, refreshed until Ctrl-C. With --json, print one line per refresh.

    The rates of relays are averages of the last minute, from the samples that they write every ten seconds. The rates
    of recording and of the backlog are differences of two refreshes. While the store is unavailable, the last values
    stay.

    \b
    Examples:
      pillarbox top
      pillarbox top --once
      pillarbox top --interval 10s --json
    """
    from pillarbox.ops.cli.store_access import with_shared_store

    if interval <= 0:
        raise click.BadParameter("it must be longer than zero", param_hint="--interval")

    async def watch(store: AdminStore) -> None:
        refreshes = _refreshes(store, interval)
        first = await anext(refreshes)
        if once:
            second = await anext(refreshes)
            if second.error is not None:
                raise second.error
            _show(second, as_json=as_json)
        elif as_json or not sys.stdout.isatty():
            _show(first, as_json=as_json)
            async for refresh in refreshes:
                _show(refresh, as_json=as_json)
        else:
            await _live(first, refreshes)

    with_shared_store(watch)


class Refresh(NamedTuple):
    """A frame to show."""

    frame: Frame
    error: StoreUnavailableError | None
    """Why the store did not respond: then the frame is the previous one."""


async def _refreshes(store: AdminStore, interval: float) -> AsyncIterator[Refresh]:
    """Yield frames. After the first one, errors of the store do not end the iteration."""
    from pillarbox.core.clock import SystemClock, seconds
    from pillarbox.ops.cli.context import current_settings
    from pillarbox.ops.top_statistics import Watch

    allowed = seconds(current_settings().console.slo)
    watch = Watch(store, clock=SystemClock().monotonic, allowed=allowed)
    refresh = Refresh(await watch.refresh(), None)
    while True:
        yield refresh
        await asyncio.sleep(interval)
        try:
            refresh = Refresh(await watch.refresh(), None)
        except StoreUnavailableError as error:
            refresh = Refresh(refresh.frame, error)


async def _live(first: Refresh, refreshes: AsyncIterator[Refresh]) -> None:
    from rich.console import Console
    from rich.live import Live

    console = Console()
    with Live(_fitted(first, console), console=console, auto_refresh=False, screen=True) as screen:
        async for refresh in refreshes:
            screen.update(_fitted(refresh, console), refresh=True)


def _fitted(refresh: Refresh, console: Console) -> Group:
    return _drawn(refresh, width=console.width, height=console.height)


def _show(refresh: Refresh, *, as_json: bool) -> None:
    if as_json:
        error = None if refresh.error is None else str(refresh.error)
        print_json(_as_object(refresh.frame) | {"store_error": error})
    elif sys.stdout.isatty():
        from rich.console import Console

        console = Console()
        console.print(_drawn(refresh, width=console.width))
    else:
        for line in _lines(refresh):
            click.echo(line)


def _drawn(refresh: Refresh, *, width: int, height: int | None = None) -> Group:
    """Draw a frame for a terminal of this width, and of this height if it is given."""
    from rich.console import Group
    from rich.text import Text

    frame = refresh.frame
    first, *rest = _head(frame)
    lines = [Text(line, style="red") for line in _store_error(refresh)]
    lines += [Text(first, style=_COLOURS[frame.flow.state]), *(Text(line) for line in rest)]
    sheets = [sheet for sheet in (_destinations_sheet(frame), _relays_sheet(frame)) if sheet.rows]
    above = sum(1 + line.cell_len // width for line in lines)
    most = [None] * len(sheets) if height is None else shares(height - above, *sheets)
    tables = [part for sheet, rows in zip(sheets, most, strict=True) for part in drawn(sheet, width=width, most=rows)]
    return Group(*lines, *tables)


def _destinations_sheet(frame: Frame) -> Sheet:
    spare = ["p99 lag", "median lag", "dead/s", "retried/s"]
    return Sheet(_COLUMNS, _destinations(frame), names=["destination"], spare=spare, cut="last error")


def _relays_sheet(frame: Frame) -> Sheet:
    return Sheet(_RELAYS, _relays(frame), names=["relay"], spare=["host", "lease"])


def _lines(refresh: Refresh) -> list[str]:
    """Format a frame for a pipe."""
    frame = refresh.frame
    tables = ["\t".join(row) for row in (_COLUMNS, *_destinations(frame))] if frame.destinations else []
    relays = ["\t".join(row) for row in (_RELAYS, *_relays(frame))] if frame.relays else []
    return [*_store_error(refresh), *_head(frame), *tables, *relays]


def _store_error(refresh: Refresh) -> list[str]:
    return (
        []
        if refresh.error is None
        else [f"the store is unavailable, these are the last values: {clean(refresh.error)}"]
    )


def _head(frame: Frame) -> list[str]:
    parts = [
        f"{_pending(frame)} pending",
        f"the oldest for {span(frame.oldest)}" if frame.oldest is not None else "",
        f"{number(frame.dead, most=COUNTED)} dead",
        f"{frame.recorded:,.1f} recorded/s" if frame.recorded is not None else "",
        f"backlog {frame.growth:+,.1f}/s" if frame.growth is not None else "",
        f"{frame.lanes - frame.unowned_lanes} of {frame.lanes} lanes owned",
    ]
    why = f": {clean(frame.flow.reason)}" if frame.flow.reason else ""
    return [f"{frame.flow.state}{why}", ", ".join(part for part in parts if part)]


def _pending(frame: Frame) -> str:
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


def _as_object(frame: Frame) -> dict[str, object]:
    """Return a frame as a JSON object."""
    return {
        "state": frame.flow.state,
        "reason": frame.flow.reason,
        "backlog": frame.backlog,
        "exact": frame.exact,
        "oldest_seconds": _rounded(frame.oldest),
        "dead_letters": frame.dead,
        "recorded_per_second": _rounded(frame.recorded),
        "backlog_per_second": _rounded(frame.growth),
        "lanes": frame.lanes,
        "unowned_lanes": frame.unowned_lanes,
        "destinations": [_destination(one) for one in frame.destinations],
        "relays": [
            {"name": one.name, "host": one.host, "lanes": one.lanes, "lease_seconds": _rounded(one.lease)}
            for one in frame.relays
        ],
    }


def _destination(one: DestinationStatistics) -> dict[str, object]:
    return {
        "name": one.view.name,
        "state": one.view.state,
        "delivered_per_second": _rounded(one.published),
        "retried_per_second": _rounded(one.retried),
        "dead_lettered_per_second": _rounded(one.dead),
        "lag_p50_seconds": _rounded(one.lag),
        "lag_p99_seconds": _rounded(one.slow),
        "last_error": one.view.last_error,
    }


def _rounded(value: float | None) -> float | None:
    """Round for JSON, which has no infinity: None stands for it."""
    return None if value is None or value == float("inf") else round(value, 3)
