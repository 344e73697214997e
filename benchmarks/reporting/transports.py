"""The table of transports beside their clients, and the file from which the page of benchmarks takes it."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

from benchmarks.processes import ROOT
from benchmarks.reporting.tables import significant, table

STORED = ROOT / "docs" / "reference" / "transports.json"
STORES = ("PostgreSQL", "MariaDB")
_HEADS = [
    "",
    "client alone/s",
    "its µs",
    "relay, events/s",
    "Python µs",
    "database µs",
    "of client",
    "of the smaller",
]


class Drained(NamedTuple):
    """One backlog, drained once."""

    rate: float
    python: float
    """µs of CPU per event of the relay."""
    database: float
    """µs of CPU per event of the database."""


@dataclass(slots=True)
class Row:
    """The samples of one line of the table."""

    raw: list[float] = field(default_factory=list)
    client: list[float] = field(default_factory=list)
    drained: list[Drained] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class TransportRun:
    """Everything that one run of `python -m benchmarks.transports` measured."""

    machine: dict[str, Any]
    started: str
    events: int
    rounds: int
    rows: dict[str, Row] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def read(cls, path: Path) -> Self:
        data = json.loads(path.read_text())
        return cls(**data | {"rows": {name: _row(row) for name, row in data["rows"].items()}})


def stored() -> TransportRun | None:
    """The run that the page shows; None: there is none yet."""
    return TransportRun.read(STORED) if STORED.exists() else None


def section(run: TransportRun | None) -> str:
    """The part of the page."""
    if run is None:
        return "Not measured yet."
    machine = f"{run.machine['cores']} cores, Python {run.machine['python']}"
    measured = f"Measured on {run.started[:10]} ({machine}): {run.events:,} events, the median of {run.rounds} rounds."
    return f"{measured}\n\n{table_of(run.rows)}"


def table_of(rows: Mapping[str, Row]) -> str:
    """A line for each store and each transport."""
    alone = statistics.median(one.rate for one in rows["PostgreSQL"].drained)
    lines = []
    for name, row in rows.items():
        rates = [one.rate for one in row.drained]
        rate, raw = statistics.median(rates), statistics.median(row.raw) if row.raw else 0.0
        lines.append(
            [
                f"{name}, sends confirmed at once" if name in STORES else name,
                f"{significant(raw):,}" if raw else "",
                f"{statistics.median(row.client):.0f}" if raw else "",
                f"{significant(rate):,} ({significant(min(rates)):,} to {significant(max(rates)):,})",
                f"{statistics.median(one.python for one in row.drained):.0f}",
                f"{statistics.median(one.database for one in row.drained):.0f}",
                f"{rate / raw:.2f}" if raw else "",
                f"{rate / min(raw, alone):.2f}" if raw else "",
            ]
        )
    return table(_HEADS, lines)


def _row(data: Mapping[str, Any]) -> Row:
    return Row(data["raw"], data["client"], [Drained(*one) for one in data["drained"]])
