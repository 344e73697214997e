"""What the matrix is made of: engines, cells and rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Engine(StrEnum):
    """A column. Its value is the name of the field of a row."""

    POSTGRESQL = "postgresql"
    MARIADB = "mariadb"
    SQLITE = "sqlite"
    RABBITMQ = "rabbitmq"
    KAFKA = "kafka"
    NATS = "nats"
    REDIS = "redis"
    WEBHOOK = "webhook"
    HANDLERS = "handlers"


TITLES: Mapping[Engine, str] = {
    Engine.POSTGRESQL: "PostgreSQL",
    Engine.MARIADB: "MariaDB",
    Engine.SQLITE: "SQLite",
    Engine.RABBITMQ: "RabbitMQ",
    Engine.KAFKA: "Kafka (mock)",
    Engine.NATS: "NATS",
    Engine.REDIS: "Redis",
    Engine.WEBHOOK: "webhook",
    Engine.HANDLERS: "handlers",
}


class Coverage(StrEnum):
    """What the tests of a cell claim."""

    SHOWN = "shown"
    PARTLY = "partly"
    MISSING = "missing"
    UNTESTABLE = "untestable"
    NOT_APPLICABLE = "n/a"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A fault on an engine."""

    coverage: Coverage
    nodes: tuple[str, ...] = ()
    """Ids of tests, as pytest takes them; without brackets all cases of a test."""
    text: str = ""
    """What a partly shown fault lacks, or why a fault is not applicable or cannot be tested."""


def shown(*nodes: str) -> Cell:
    """The tests, below `tests/`, show the fault on this engine."""
    if not nodes:
        raise ValueError("a fault is shown by at least one test")
    return Cell(coverage=Coverage.SHOWN, nodes=_from_root(nodes))


def partly(lacks: str, *nodes: str) -> Cell:
    """The tests show a part of the fault; `lacks` says what they do not show."""
    if not nodes or not lacks:
        raise ValueError("a fault that is partly shown has tests, and something that they lack")
    return Cell(coverage=Coverage.PARTLY, nodes=_from_root(nodes), text=lacks)


def missing(note: str = "") -> Cell:
    """No test shows the fault on this engine."""
    return Cell(coverage=Coverage.MISSING, text=note)


def untestable(reason: str) -> Cell:
    """The fault can happen to this engine, but not to what stands in for it in the tests."""
    if not reason:
        raise ValueError("a fault that cannot be tested has a reason")
    return Cell(coverage=Coverage.UNTESTABLE, text=reason)


def not_applicable(reason: str) -> Cell:
    """The fault cannot happen to this engine, or has nothing to do with it."""
    if not reason:
        raise ValueError("a fault that is not applicable has a reason")
    return Cell(coverage=Coverage.NOT_APPLICABLE, text=reason)


def _from_root(nodes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"tests/{node}" for node in nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A fault. It has a cell for every engine."""

    name: str
    """Selects the row on the command line."""
    fault: str
    shows: str
    """What the tests require."""
    postgresql: Cell
    mariadb: Cell
    sqlite: Cell
    rabbitmq: Cell
    kafka: Cell
    nats: Cell
    redis: Cell
    webhook: Cell
    handlers: Cell

    def cells(self) -> dict[Engine, Cell]:
        return {engine: getattr(self, engine.value) for engine in Engine}


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Rows of one kind."""

    title: str
    rows: tuple[Row, ...]
