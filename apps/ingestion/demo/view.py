"""The output of the demo: a live table on a terminal, one line per second elsewhere, and the verification."""

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

from apps.ingestion.demo.scenario import STATUSES, Seen, Show, Verification

ROWS = 12
_COLOURS = {"UPLOADED": "yellow", "VALIDATED": "cyan", "ENRICHED": "green"}


@contextmanager
def shown(console: Console, title: str) -> Iterator[Show]:
    if not console.is_terminal:
        yield _lines(console, title)
        return
    with Live(console=console, refresh_per_second=10) as live:
        yield lambda seen, uploaded: live.update(_table(title, seen, uploaded))


def report(console: Console, verification: Verification) -> None:
    counts = ", ".join(f"{count} {status}" for status, count in verification.statuses.items() if count) or "none"
    console.print(f"{verification.uploaded} uploaded in {verification.seconds} s: {counts}")
    if verification.ok:
        console.print("[bold green]Verified: every document was enriched once.[/]")
        return
    left = verification.uploaded - verification.statuses["ENRICHED"]
    failures = {
        "not enriched": left,
        "lost": verification.lost,
        "phantom": verification.phantom,
        "refused": verification.refused,
    }
    console.print(f"[bold red]Verification failed:[/] {', '.join(f'{n} {what}' for what, n in failures.items() if n)}")


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
    table.add_column("status", no_wrap=True)
    table.add_column("took", justify="right")
    for document in seen[:ROWS]:
        table.add_row(document.name, _steps(document.status), f"{document.seconds * 1000:,.0f} ms")
    for _ in range(ROWS - len(seen)):
        table.add_row("", "", "")
    return table


def _steps(status: str) -> Text:
    """The steps taken so far; the others are dim."""
    shown = Text()
    taken = STATUSES.index(status)
    for number, step in enumerate(STATUSES):
        shown.append(" → " if number else "", style="dim")
        shown.append(step, style=_COLOURS[step] if number <= taken else "dim")
    return shown


def _summary(seen: list[Seen], uploaded: int) -> str:
    counts = Counter(document.status for document in seen)
    return f"{uploaded} uploaded: " + ", ".join(f"{counts[status]} {status}" for status in STATUSES)
