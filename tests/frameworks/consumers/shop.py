"""A service that records orders, its relay, and the consumer process of a recipe."""

import asyncio
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pika
import psycopg
from pika.exceptions import ChannelClosedByBroker

from pillarbox import Event, Outbox, Relay
from pillarbox.schemes import open_transport
from pillarbox.stores.postgres import PostgresStore
from pillarbox.table_names import TableNames
from tests.frameworks.programs import running
from tests.integration.rabbitmq.consumer import Taken, channel, publish_confirmed, take_all
from tests.servers.processes import Started
from tests.servers.waiting import wait_until

BOUND = 120.0


class Shop:
    """A database with orders and invoices, and a virtual host of the broker."""

    def __init__(self, database: str, broker: str) -> None:
        self.database = database
        self.broker = broker
        self._consumer: Started | None = None

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for a condition while the consumer runs; fails at once with its log if it ends."""
        consumer = self._consumer
        wait_until(lambda: (consumer is None or consumer.must_run()) and condition(), bound=BOUND, what=what, pause=0.1)

    def place(self, *orders: int) -> None:
        """Record orders; the event id of an order is always the same, so that a second one is a duplicate."""
        with psycopg.connect(self.database) as connection:
            Outbox().record(
                connection, *(Event("order.placed", {"id": one}, event_id=f"order-{one}") for one in orders)
            )

    def relay(self, scheme: str = "amqp") -> None:
        """Run a relay until everything recorded is published. It sends an event again that is recorded again."""

        async def publish() -> None:
            store = PostgresStore(self.database, history=False, ledger=False)
            transport = open_transport(self.broker.replace("amqp", scheme, 1))
            try:
                await Relay(store=store, transports={"broker": transport}).run_until_empty()
            finally:
                await transport.aclose()
                await store.aclose()

        asyncio.run(publish())

    def invoices(self) -> list[int]:
        """The committed effects of the consumer."""
        with psycopg.connect(self.database) as connection:
            return [row[0] for row in connection.execute("SELECT order_id FROM invoice ORDER BY order_id")]

    def wait_for_invoices(self, *orders: int) -> None:
        self.wait(lambda: len(self.invoices()) >= len(orders), f"invoices of {orders}")
        assert self.invoices() == sorted(orders)

    @contextmanager
    def invoices_locked(self) -> Iterator[None]:
        """No consumer can write an invoice meanwhile."""
        with psycopg.connect(self.database) as connection:
            connection.execute("LOCK TABLE invoice IN ACCESS EXCLUSIVE MODE")
            yield

    def wait_for_a_blocked_consumer(self) -> None:
        """A consumer is in the middle of its transaction."""
        blocked = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )

        def found() -> bool:
            with psycopg.connect(self.database) as connection:
                row = connection.execute(blocked).fetchone()
                return row is not None and row[0] > 0

        self.wait(found, "a consumer waits for the lock")

    def exists(self, queue: str) -> bool:
        return self.ready(queue) is not None

    def ready(self, queue: str) -> int | None:
        """The messages of the queue that no consumer has; None if there is no queue."""
        with pika.BlockingConnection(pika.URLParameters(self.broker)) as connection:
            try:
                return int(connection.channel().queue_declare(queue, passive=True).method.message_count)
            except ChannelClosedByBroker:
                return None

    def taken(self, queue: str) -> list[Taken]:
        return take_all(self.broker, queue)

    def declare(self, queue: str, **arguments: str) -> None:
        """Declare a durable queue as another application would."""
        with channel(self.broker) as broker:
            broker.queue_declare(queue, durable=True, arguments=arguments)

    def publish(self, queue: str, body: bytes) -> None:
        """Publish a message without any property, as a foreign producer may."""
        with channel(self.broker) as broker:
            broker.confirm_delivery()
            publish_confirmed(broker, "", queue, body)

    async def apply_schema(self, tables: TableNames) -> None:
        """Create tables with another prefix."""
        store = PostgresStore(self.database, tables=tables)
        await store.schema.apply()
        await store.aclose()

    @contextmanager
    def consumer(self, command: Sequence[str], folder: Path) -> Iterator[Started]:
        """The process of a recipe, which is killed with its children at the end."""
        variables = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder),
            "AMQP_URL": self.broker,
            "DATABASE_URL": self.database,
        }
        with running(command, folder, variables) as started:
            self._consumer = started
            try:
                yield started
            finally:
                self._consumer = None
