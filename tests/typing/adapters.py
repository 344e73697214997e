"""Our adapters are what their protocols ask for, to every type checker. Nothing here is run."""

from pillarbox.adapters import Delivery, Source, Store, Transport
from pillarbox.stores.memory import MemoryStore
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.transports.handlers import Handlers, HandlerTransport
from pillarbox.transports.memory import MemoryTransport
from pillarbox.transports.memory_source import MemoryDelivery, MemorySource
from pillarbox.transports.rabbitmq import RabbitMQSource, RabbitMQTransport
from pillarbox.transports.rabbitmq.source import RabbitMQDelivery
from pillarbox.transports.stdout import StdoutTransport


def stores(memory: MemoryStore, sqlite: SqliteStore, postgres: PostgresStore) -> list[Store]:
    return [memory, sqlite, postgres]


def transports(
    memory: MemoryTransport,
    stdout: StdoutTransport,
    handlers: Handlers,
    calling: HandlerTransport,
    rabbitmq: RabbitMQTransport,
) -> list[Transport]:
    return [memory, stdout, handlers, calling, rabbitmq]


def sources(memory: MemorySource, rabbitmq: RabbitMQSource) -> list[Source]:
    return [memory, rabbitmq]


def deliveries(memory: MemoryDelivery, rabbitmq: RabbitMQDelivery) -> list[Delivery]:
    return [memory, rabbitmq]
