"""The matrix of capabilities, made from the flags of the stores and the transports.

`python -m tests.docs.matrix` writes it into its page.
"""

from collections.abc import Mapping
from dataclasses import fields

from pillarbox.core.store import Capabilities
from pillarbox.core.transport import Pace
from pillarbox.stores.memory import MemoryStore
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.conformance.transports import TransportCapabilities
from pillarbox.transports.handlers import Handlers
from pillarbox.transports.memory import MemoryTransport
from pillarbox.transports.rabbitmq import RabbitMQTransport
from pillarbox.transports.stdout import StdoutTransport
from tests.conformance.test_handlers import HandlersHarness
from tests.conformance.test_memory_transport import MemoryTransportHarness
from tests.conformance.test_rabbitmq import RabbitMQHarness
from tests.conformance.test_stdout import StdoutHarness
from tests.docs.pages import ROOT

PAGE = ROOT / "docs/reference/capabilities.md"
STORES = {
    "memory": MemoryStore().capabilities,
    "SQLite": SqliteStore.capabilities,
    "PostgreSQL": PostgresStore.capabilities,
}
TRANSPORTS = {
    "memory": MemoryTransportHarness.capabilities,
    "stdout": StdoutHarness.capabilities,
    "handlers": HandlersHarness.capabilities,
    "RabbitMQ": RabbitMQHarness.capabilities,
}
PACES = {
    "memory": MemoryTransport().pace,
    "stdout": StdoutTransport.pace,
    "handlers": Handlers().pace,
    "RabbitMQ": RabbitMQTransport("amqp://localhost").pace,
}
TABLES: list[tuple[type, Mapping[str, object]]] = [
    (Capabilities, STORES),
    (TransportCapabilities, TRANSPORTS),
    (Pace, PACES),
]


def table(kind: type, of: Mapping[str, object]) -> str:
    """One column per store or transport, one row per flag."""
    lines = ["| | " + " | ".join(of) + " |", "|---|" + "---|" * len(of)]
    for flag in fields(kind):
        values = [getattr(flags, flag.name) for flags in of.values()]
        lines.append(f"| `{flag.name}` | " + " | ".join(_word(value) for value in values) + " |")
    return "\n".join(lines) + "\n"


def _word(value: object) -> str:
    if value is None or isinstance(value, bool) or callable(value):
        return "yes" if value else "no"
    if isinstance(value, frozenset):
        return ", ".join(sorted(map(str, value)))
    return str(value)


def filled(page: str) -> str:
    """The page with each of its tables as it has to be."""
    found = page.split("\n\n")
    places = [index for index, part in enumerate(found) if part.startswith("| | ")]
    for place, (kind, of) in zip(places, TABLES, strict=True):
        found[place] = table(kind, of).rstrip("\n")
    return "\n\n".join(found)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
