"""What commands print: tables and colours on a terminal, tab-separated lines in a pipe, JSON where it was asked for.

Whatever comes from an event is data: control characters are shown as such and never reach the terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Protocol

import click

from pillarbox.core.clock import timestamp
from pillarbox.core.text import escaped, safe_json

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")

_LONGEST_CELL = 60


def print_json(value: object) -> None:
    """On one line, without characters that a terminal would obey."""
    click.echo(safe_json(value))


def clean(value: object) -> str:
    """A value as text that is safe on a terminal, on one line; None is nothing."""
    text = "" if value is None else moment(value) if isinstance(value, datetime) else str(value)
    return escaped(text)


def moment(at: datetime) -> str:
    """A time, as all output has it."""
    return timestamp(at)


def span(seconds: float) -> str:
    """A time span for people."""
    for unit, size in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.1f} s"


def number(count: int, *, most: int | None = None) -> str:
    """A count for people; one beyond `most` stands for that many or more."""
    return f"more than {most:,}" if most is not None and count > most else f"{count:,}"


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table on a terminal, a row per block where it is too narrow; in a pipe, names and then rows with tabs in
    between, nothing cut off."""
    if not sys.stdout.isatty():
        for row in (columns, *rows):
            click.echo("\t".join(clean(cell) for cell in row))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    told = [n for n in range(len(columns)) if any(row[n] not in (None, "") for row in rows)]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for n in told:
        table.add_column(columns[n])
    for row in rows:
        # Text, not str: brackets in data are no markup.
        cells = [(clean(row[n]), _STYLES.get(str(row[n]), "")) for n in told]
        table.add_row(*(Text(_short(text), style=style) for text, style in cells))
    console = Console()
    unbounded = console.options.update(max_width=sys.maxsize)
    if console.measure(table, options=unbounded).maximum <= console.width:
        console.print(table)
        return
    for number, row in enumerate(rows):
        if number:
            click.echo()
        print_facts([(columns[n], row[n]) for n in told])


_STYLES = {"FAILED": "red", "PUBLISHED": "green", "PROCESSING": "cyan", "open": "red", "paused": "yellow"}


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_CELL else text[: _LONGEST_CELL - 1] + "…"


def print_facts(facts: Sequence[tuple[str, object]]) -> None:
    """Names and values, one per line; what is not there is left out."""
    shown = [(name, clean(value)) for name, value in facts if value is not None and value != ""]
    width = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        click.echo(f"{name:<{width}}  {value}")


def print_line(text: str, *, colour: str) -> None:
    """A line, coloured on a terminal."""
    if not sys.stdout.isatty():
        click.echo(text)
        return
    from rich.console import Console
    from rich.text import Text

    Console().print(Text(text, style=colour), soft_wrap=True)


class Advance(Protocol):
    """Tells a progress bar what was done."""

    def __call__(self, *, amount: int, events: int) -> None: ...


def _nowhere(*, amount: int, events: int) -> None:
    """Nobody watches."""


@contextmanager
def progress(what: str, *, size: int | None) -> Iterator[Advance]:
    """A progress bar on standard error, if that is a terminal; `size` is what all amounts add up to, None: unknown."""
    if not sys.stderr.isatty():
        yield _nowhere
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns: list[Any] = [
        TextColumn(what),
        BarColumn(),
        TextColumn("{task.fields[events]:,} events"),
        TimeElapsedColumn(),
    ]
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=size, events=0)
        done = 0

        def advance(*, amount: int, events: int) -> None:
            nonlocal done
            done += events
            bar.update(task, advance=amount, events=done)

        yield advance
