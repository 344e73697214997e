"""Print output: tables and colours on a terminal, tab-separated lines in a pipe, JSON with --json.

Values of an event are data: control characters are escaped and never reach the terminal.
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
    """Print JSON on one line, with control characters escaped."""
    click.echo(safe_json(value))


def clean(value: object) -> str:
    """Format a value as one line of text that is safe on a terminal; None is ''."""
    text = "" if value is None else timestamp(value) if isinstance(value, datetime) else str(value)
    return escaped(text)


def span(seconds: float) -> str:
    """Format a duration with a readable unit."""
    for unit, size in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.1f} s"


def number(count: int, *, most: int | None = None) -> str:
    """Format a count; a count above `most` stands for that many or more."""
    return f"more than {most:,}" if most is not None and count > most else f"{count:,}"


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table on a terminal, or one block per row if the terminal is too narrow.

    In a pipe, print tab-separated lines, column names first, nothing truncated.
    """
    if not sys.stdout.isatty():
        for row in (columns, *rows):
            click.echo("\t".join(clean(cell) for cell in row))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    used = [n for n in range(len(columns)) if any(row[n] not in (None, "") for row in rows)]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for n in used:
        table.add_column(columns[n])
    for row in rows:
        # Text, not str: rich would read brackets in data as markup.
        cells = [(clean(row[n]), _STYLES.get(str(row[n]), "")) for n in used]
        table.add_row(*(Text(_short(text), style=style) for text, style in cells))
    console = Console()
    unbounded = console.options.update(max_width=sys.maxsize)
    if console.measure(table, options=unbounded).maximum <= console.width:
        console.print(table)
        return
    for number, row in enumerate(rows):
        if number:
            click.echo()
        print_facts([(columns[n], row[n]) for n in used])


_STYLES = {
    **dict.fromkeys(("blocked", "dead-lettered", "unavailable"), "red"),
    **dict.fromkeys(("retrying", "parked", "paused", "limited"), "yellow"),
    "published": "green",
    "in flight": "cyan",
}


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_CELL else text[: _LONGEST_CELL - 1] + "…"


def print_facts(facts: Sequence[tuple[str, object]]) -> None:
    """Print names and values, one per line, without empty values."""
    shown = [(name, clean(value)) for name, value in facts if value is not None and value != ""]
    width = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        click.echo(f"{name:<{width}}  {value}")


def print_line(text: str, *, colour: str) -> None:
    """Print a line, coloured on a terminal."""
    if not sys.stdout.isatty():
        click.echo(text)
        return
    from rich.console import Console
    from rich.text import Text

    Console().print(Text(text, style=colour), soft_wrap=True)


class Advance(Protocol):
    """Advances a progress bar."""

    def __call__(self, *, amount: int, events: int) -> None: ...


def _ignore(*, amount: int, events: int) -> None:
    """Advance nothing, because there is no terminal."""


@contextmanager
def progress(what: str, *, size: int | None) -> Iterator[Advance]:
    """Show a progress bar on standard error if it is a terminal. size: the sum of all amounts; None: unknown."""
    if not sys.stderr.isatty():
        yield _ignore
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
