"""What people see: a live table on a terminal, a line a second elsewhere, and the verdict."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from rich import box
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from apps.ingestion.demo.course import STATUSES, Seen, Show, Verdict

ROWS = 12
_COLOURS = {"UPLOADED": "yellow", "VALIDATED": "cyan", "ENRICHED": "green"}


@contextmanager
def shown(console: Console, title: str) -> Iterator[Show]:
    if not console.is_terminal:
        yield _lines(console, title)
        return
    with Live(console=console, refresh_per_second=10) as live:
        yield lambda seen, uploaded: live.update(_table(title, seen, uploaded))


def tell(console: Console, verdict: Verdict) -> None:
    ways = ", ".join(f"{count} {status}" for status, count in verdict.statuses.items() if count) or "none"
    console.print(f"{verdict.uploaded} uploaded in {verdict.seconds} s: {ways}")
    if verdict.ok:
        console.print("[bold green]Every document went all the way, once.[/]")
        return
    left = verdict.uploaded - verdict.statuses["ENRICHED"]
    faults = {"not enriched": left, "lost": verdict.lost, "phantom": verdict.phantom, "refused": verdict.refused}
    console.print(f"[bold red]Not as it should be:[/] {', '.join(f'{n} {what}' for what, n in faults.items() if n)}")


def _lines(console: Console, title: str) -> Show:
    console.print(title)
    last = time.monotonic()

    def show(seen: list[Seen], uploaded: int) -> None:
        nonlocal last
        if time.monotonic() - last >= 1:
            last = time.monotonic()
            console.print(_summary(seen, uploaded))

    return show


def _table(title: str, seen: list[Seen], uploaded: int) -> Table:
    table = Table(title="Document ingestion", caption=f"{title}\n{_summary(seen, uploaded)}", box=box.ROUNDED)
    table.add_column("document")
    table.add_column("way", no_wrap=True)
    table.add_column("took", justify="right")
    for document in seen[:ROWS]:
        table.add_row(document.name, _way(document.status), f"{document.seconds * 1000:,.0f} ms")
    for _ in range(ROWS - len(seen)):
        table.add_row("", "", "")
    return table


def _way(status: str) -> Text:
    """The steps it has taken; those it has not are dim."""
    shown = Text()
    taken = STATUSES.index(status)
    for place, step in enumerate(STATUSES):
        shown.append(" → " if place else "", style="dim")
        shown.append(step, style=_COLOURS[step] if place <= taken else "dim")
    return shown


def _summary(seen: list[Seen], uploaded: int) -> str:
    counts = Counter(document.status for document in seen)
    return f"{uploaded} uploaded: " + ", ".join(f"{counts[status]} {status}" for status in STATUSES)
