"""What one run of the benchmarks showed, as values and as JSON."""

from __future__ import annotations

import json
import statistics
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self


class Spread(NamedTuple):
    """The median of several samples, and the least and the most."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: list[float]) -> Self:
        return cls(statistics.median(values), min(values), max(values))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One backlog, drained once. CPU is in µs per event."""

    events: int
    seconds: float
    python: float
    postgres: float
    rabbitmq: float
    memory: float
    """The most that one process of the contender had, in MiB."""
    repeats: int = 0
    """Messages too many."""

    @property
    def rate(self) -> float:
        return self.events / self.seconds

    @property
    def cpu(self) -> float:
        return self.python + self.postgres + self.rabbitmq


@dataclass(slots=True, kw_only=True)
class Contender:
    """One way to drain the backlog of a cell."""

    name: str
    samples: list[Sample] = field(default_factory=list)
    calls: float | None = None
    """Python calls per event, those of C functions included."""
    statements: float | None = None
    """SQL statements per event."""
    skipped: str = ""
    """Why there are no samples."""

    def spread(self, what: str) -> Spread:
        return Spread.of([float(getattr(sample, what)) for sample in self.samples])

    def shares(self, raw: list[float]) -> Spread:
        """The share of the raw limit, each sample divided by the limit before and after it."""
        pairs = zip(self.samples, raw, raw[1:], strict=False)
        return Spread.of([sample.rate / statistics.mean((before, after)) for sample, before, after in pairs])

    def ratios(self, other: Contender) -> Spread:
        """How many times as fast as another contender, sample by sample."""
        pairs = zip(self.samples, other.samples, strict=False)
        return Spread.of([mine.rate / its.rate for mine, its in pairs])

    def ceiling(self, cores: int) -> float:
        """Events a second if every core did nothing but this."""
        return cores / self.spread("cpu").median * 1e6


@dataclass(slots=True, kw_only=True)
class Cell:
    """Contenders that took turns, with the raw limit before the first turn and after each."""

    name: str
    queue: str
    """Its type; '' where no broker takes part."""
    contenders: list[Contender] = field(default_factory=list)
    raw: list[float] = field(default_factory=list)
    """Messages a second."""
    confirms: dict[str, list[float]] = field(default_factory=dict)
    """Messages a second that the queue confirms with this many in flight, before each round."""

    def __getitem__(self, name: str) -> Contender:
        return next(one for one in self.contenders if one.name == name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """From the begin of the commit to the confirm, at a steady rate, in ms."""

    rate: int
    achieved: float
    events: int
    p50: float
    p99: float
    longest: float
    floor_p50: float
    """The same with nothing in between: one connection commits, then publishes and waits."""
    floor_p99: float

    @property
    def p50_ratio(self) -> float:
        return self.p50 / self.floor_p50

    @property
    def p99_ratio(self) -> float:
        return self.p99 / self.floor_p99


@dataclass(slots=True, kw_only=True)
class Run:
    """Everything that one run measured."""

    machine: dict[str, Any]
    quick: bool
    started: str
    seconds: float = 0.0
    cells: list[Cell] = field(default_factory=list)
    latencies: list[Latency] = field(default_factory=list)
    record: str = ""
    """What `python -m benchmarks.record` printed, or why it did not."""

    @property
    def cores(self) -> int:
        return int(self.machine["cores"])

    def latency(self, rate: int, what: str) -> Spread:
        """Of all rounds at a rate."""
        return Spread.of([float(getattr(one, what)) for one in self.latencies if one.rate == rate])

    @property
    def rates(self) -> list[int]:
        """At which latency was measured."""
        return sorted({one.rate for one in self.latencies})

    def cell(self, name: str) -> Cell | None:
        return next((cell for cell in self.cells if cell.name == name), None)

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(_rounded(asdict(self)), indent=1) + "\n")

    @classmethod
    def read(cls, path: Path) -> Self:
        data = json.loads(path.read_text())
        data["cells"] = [_cell(cell) for cell in data["cells"]]
        data["latencies"] = [Latency(**row) for row in data["latencies"]]
        return cls(**data)


def _cell(data: dict[str, Any]) -> Cell:
    contenders = [
        Contender(**one | {"samples": [Sample(**sample) for sample in one["samples"]]}) for one in data["contenders"]
    ]
    return Cell(**data | {"contenders": contenders})


def _rounded(value: Any) -> Any:
    """Four digits are more than the noise leaves."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return value
