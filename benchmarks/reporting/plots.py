"""Bars as SVG, legible on a light and on a dark page, without a library."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from benchmarks.reporting.tables import significant
from benchmarks.results import Cell, Run, Spread

WIDTH, LABEL, VALUE = 720, 210, 90
"""Of the picture, of the names at the left, of the values at the right."""
LINE, BAR, TOP = 26, 16, 40
COLOURS = {"raw": "#8a8f98", "ours": "#2f6fde", "peer": "#c2762b", "floor": "#8a8f98"}


class Bar(NamedTuple):
    """One line of a plot."""

    label: str
    spread: Spread
    colour: str


def bars(title: str, unit: str, rows: Sequence[Bar]) -> str:
    """A plot with a bar for each row: the median, and a line from the least to the most."""
    most = max(row.spread.most for row in rows)
    scale = (WIDTH - LABEL - VALUE) / most
    height = TOP + LINE * len(rows) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'role="img" font-family="system-ui, sans-serif" font-size="13">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff" rx="6"/>',
        f'<text x="12" y="24" font-weight="600" fill="#1c1f23">{escape(title)} ({escape(unit)})</text>',
    ]
    for number, row in enumerate(rows):
        parts += _bar(row, TOP + LINE * number, scale)
    return "\n".join([*parts, "</svg>\n"])


def _bar(row: Bar, top: int, scale: float) -> list[str]:
    middle, text = top + BAR // 2, top + BAR - 3
    length = row.spread.median * scale
    left, right = (LABEL + value * scale for value in (row.spread.least, row.spread.most))
    value = f"{significant(row.spread.median):,}" if row.spread.median >= 100 else f"{row.spread.median:.1f}"
    lines = [
        f'<text x="{LABEL - 8}" y="{text}" text-anchor="end" fill="#1c1f23">{escape(row.label)}</text>',
        f'<rect x="{LABEL}" y="{top}" width="{length:.1f}" height="{BAR}" rx="2" fill="{COLOURS[row.colour]}"/>',
        f'<text x="{right + 6:.1f}" y="{text}" fill="#1c1f23">{value}</text>',
    ]
    if right > left:
        lines.insert(2, f'<path d="M{left:.1f} {middle}H{right:.1f}" stroke="#1c1f23" stroke-width="2"/>')
    return lines


def of_run(run: Run) -> dict[str, str]:
    """The plots of a run by the names of their files."""
    plots = {}
    for name in ("quorum", "classic"):
        if cell := run.cell(name):
            plots[f"bench-{name}.svg"] = bars(f"PostgreSQL → {name} queue", "events/s", _rates(cell))
        if cell := run.cell(f"peers, {name}"):
            plots[f"bench-peers-{name}.svg"] = bars(f"Beside peers, {name} queue", "events/s", _rates(cell))
    if run.latencies:
        plots["bench-latency.svg"] = bars("Commit to confirm", "ms", _latencies(run))
    return plots


def _rates(cell: Cell) -> list[Bar]:
    rows = [Bar("raw limit", Spread.of(cell.raw), "raw")] if cell.raw else []
    for one in cell.contenders:
        if one.samples:
            ours = not cell.name.startswith("peers") or one.name.startswith("Pillarbox")
            rows.append(Bar(one.name, one.spread("rate"), "ours" if ours else "peer"))
    return rows


def _latencies(run: Run) -> list[Bar]:
    rows = []
    for rate in run.rates:
        for what in ("p50", "p99"):
            rows.append(Bar(f"{rate:,} events/s, {what}", run.latency(rate, what), "ours"))
            rows.append(Bar("floor", run.latency(rate, f"floor_{what}"), "floor"))
    return rows
