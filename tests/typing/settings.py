"""What a type checker accepts as a setting, and what it refuses. Nothing here is run.

A line that must be an error is marked as one: mypy and pyright fail for a mark that is not needed.
"""

from pillarbox import Destination, Inbox, Outbox, TableNames, open_store
from pillarbox.adapters import AdminStore
from pillarbox.stores.memory import MemoryStore
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.transports.rabbitmq import RabbitMQAddress, RabbitMQTransport

URL = "postgresql://app@127.0.0.1/shop"


def tables() -> tuple[list[AdminStore], Outbox, Inbox]:
    one = TableNames(prefix="shop_", schema="messaging")
    stores: list[AdminStore] = [
        open_store(URL, tables=one),
        PostgresStore(URL, tables=one, ledger="history", history=True),
        SqliteStore("shop.db", tables=one, ledger=True),
        MemoryStore(ledger=False),
    ]
    return stores, Outbox(tables=one, duplicate="ignore", wakeup="none", max_payload="2 MiB"), Inbox(tables=one)


def rabbitmq() -> tuple[RabbitMQTransport, RabbitMQAddress]:
    transport = RabbitMQTransport("amqp://mq", window=500, declare=False, heartbeat="1m", connect_timeout=5)
    return transport, transport.to(exchange="orders", routing_key="{event_type}")


def destinations(address: RabbitMQAddress) -> list[Destination]:
    return [Destination(address), Destination(address, body="envelope", rate_limit="500/s", ordering="pipelined")]


def refused(address: RabbitMQAddress) -> None:
    Outbox(duplicate="update")  # type: ignore[arg-type]
    Outbox(wakeup="always")  # type: ignore[arg-type]
    Outbox(prefix="shop_")  # type: ignore[call-arg]
    open_store(URL, ledger="yes")  # type: ignore[arg-type]
    TableNames(prefix=1)  # type: ignore[arg-type]
    RabbitMQTransport("amqp://mq", window="many")  # type: ignore[arg-type]
    RabbitMQTransport.to(queue="orders")  # type: ignore[call-arg]
    Destination("orders")  # type: ignore[arg-type]
    Destination(address, body="xml")  # type: ignore[arg-type]
    Destination(address, ordering="loose")  # type: ignore[arg-type]
