"""The matrix of capabilities, made from the flags of the stores and the transports.

`python -m tests.docs.matrix` writes it into its page.
"""

from collections.abc import Mapping
from dataclasses import fields

from pillarbox.core.store import Capabilities
from pillarbox.core.transport import Pace
from pillarbox.stores.mariadb import MariaDBStore
from pillarbox.stores.memory import MemoryStore
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.conformance.append import AppendConformance
from pillarbox.testing.conformance.inbox import InboxConformance
from pillarbox.testing.conformance.sources import SourceCapabilities
from pillarbox.testing.conformance.sources.acknowledgement import AcknowledgementConformance
from pillarbox.testing.conformance.transports import TransportCapabilities
from pillarbox.testing.conformance.transports.content import TransportContentConformance
from pillarbox.transports.handlers import Handlers
from pillarbox.transports.kafka import KafkaTransport
from pillarbox.transports.memory import MemoryTransport
from pillarbox.transports.nats import NatsTransport
from pillarbox.transports.rabbitmq import RabbitMQTransport
from pillarbox.transports.redis import RedisTransport
from pillarbox.transports.stdout import StdoutTransport
from pillarbox.transports.webhook import WebhookTransport
from tests.conformance.test_handlers import HandlersHarness, TestSyncHandlers
from tests.conformance.test_kafka import KafkaHarness, TestKafka
from tests.conformance.test_mariadb import TestMariaDBStore
from tests.conformance.test_memory import TestMemoryStore
from tests.conformance.test_memory_transport import MemoryTransportHarness, TestMemoryTransport
from tests.conformance.test_nats import NatsHarness, TestNats
from tests.conformance.test_postgres import TestPostgresStore
from tests.conformance.test_rabbitmq import RabbitMQHarness, TestRabbitMQ
from tests.conformance.test_redis import RedisHarness, TestRedis
from tests.conformance.test_sources_kafka import KafkaSourceHarness, TestKafkaSource
from tests.conformance.test_sources_memory import MemorySourceHarness, TestMemorySource
from tests.conformance.test_sources_nats import NatsSourceHarness, TestNatsSource
from tests.conformance.test_sources_rabbitmq import RabbitMQSourceHarness, TestRabbitMQSource
from tests.conformance.test_sources_redis import RedisSourceHarness, TestRedisSource
from tests.conformance.test_sqlite import TestSqliteStore
from tests.conformance.test_stdout import StdoutHarness, TestStdout
from tests.conformance.test_webhook import TestWebhook, WebhookHarness
from tests.docs.pages import ROOT

PAGE = ROOT / "docs/reference/capabilities.md"
STORES = {
    "memory": MemoryStore().capabilities,
    "SQLite": SqliteStore.capabilities,
    "PostgreSQL": PostgresStore.capabilities,
    "MariaDB": MariaDBStore.capabilities,
}
TRANSPORTS = {
    "memory": MemoryTransportHarness.capabilities,
    "stdout": StdoutHarness.capabilities,
    "handlers": HandlersHarness.capabilities,
    "RabbitMQ": RabbitMQHarness.capabilities,
    "webhook": WebhookHarness.capabilities,
    "NATS": NatsHarness.capabilities,
    "Kafka": KafkaHarness.capabilities,
    "Redis": RedisHarness.capabilities,
}
SOURCES = {
    "memory": MemorySourceHarness.capabilities,
    "RabbitMQ": RabbitMQSourceHarness.capabilities,
    "NATS": NatsSourceHarness.capabilities,
    "Kafka": KafkaSourceHarness.capabilities,
    "Redis": RedisSourceHarness.capabilities,
}
PACES = {
    "memory": MemoryTransport().pace,
    "stdout": StdoutTransport.pace,
    "handlers": Handlers().pace,
    "RabbitMQ": RabbitMQTransport("amqp://localhost").pace,
    "webhook": WebhookTransport("https://localhost").pace,
    "NATS": NatsTransport("nats://localhost").pace,
    "Kafka": KafkaTransport("kafka://localhost").pace,
    "Redis": RedisTransport("redis://localhost").pace,
}
STORE_SUITES = dict(
    zip(STORES, (TestMemoryStore, TestSqliteStore, TestPostgresStore, TestMariaDBStore), strict=True),
)
TRANSPORT_SUITES = dict(
    zip(
        TRANSPORTS,
        (TestMemoryTransport, TestStdout, TestSyncHandlers, TestRabbitMQ, TestWebhook, TestNats, TestKafka, TestRedis),
        strict=True,
    )
)
SOURCE_SUITES = dict(
    zip(
        SOURCES,
        (TestMemorySource, TestRabbitMQSource, TestNatsSource, TestKafkaSource, TestRedisSource),
        strict=True,
    )
)
Rows = Mapping[str, Mapping[str, object]]
"""The name of a row → its value in each column."""


def suite_has(suites: Mapping[str, type], *themes: type) -> Mapping[str, bool]:
    """Whether each suite runs all tests of these themes."""
    return {name: all(issubclass(suite, theme) for theme in themes) for name, suite in suites.items()}


def flags(kind: type, of: Mapping[str, object]) -> Rows:
    """One row per field of a dataclass."""
    return {field.name: {name: getattr(value, field.name) for name, value in of.items()} for field in fields(kind)}


TABLES: list[Rows] = [
    {
        **flags(Capabilities, STORES),
        "transactions": suite_has(STORE_SUITES, AppendConformance, InboxConformance),
    },
    {
        **flags(TransportCapabilities, TRANSPORTS),
        "headers": suite_has(TRANSPORT_SUITES, TransportContentConformance),
        "pipelined": {name: pace.in_order and not pace.independent_results for name, pace in PACES.items()},
        "consumes": {name: name in SOURCES for name in TRANSPORTS},
    },
    {**flags(SourceCapabilities, SOURCES), "delays": suite_has(SOURCE_SUITES, AcknowledgementConformance)},
    flags(Pace, PACES),
]


def table(rows: Rows) -> str:
    """One column per store or transport, one row per flag."""
    columns = next(iter(rows.values()))
    lines = ["| | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    for name, values in rows.items():
        assert values.keys() == columns.keys()
        lines.append(f"| `{name}` | " + " | ".join(_word(values[column]) for column in columns) + " |")
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
    for place, rows in zip(places, TABLES, strict=True):
        found[place] = table(rows).rstrip("\n")
    return "\n\n".join(found)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
