"""Prepares the servers and the tables of the demo and cleans up afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from apps.notifications.database import migrate
from apps.notifications.domain import Audience
from apps.notifications.topology import EXCHANGE, queue_of
from apps.runtime.demo_servers import host_of, own_queues, server_of, temporary_database


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The servers and the folder of one demo."""

    folder: Path
    database: str
    broker: str
    """Empty: the listeners are handlers of the relay."""

    @property
    def title(self) -> str:
        """The path of a notification, without users and passwords."""
        store = server_of(self.database)
        between = f" → RabbitMQ at {host_of(self.broker)}" if self.broker else ""
        return f"{store} → relay{between} → listeners → delivery"


@contextmanager
def prepared(store: str, transport: str) -> Iterator[Environment]:
    """Prepare the servers and the tables. Raises ConfigurationError for a server that is unavailable or unsuitable."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="notifications-demo-")))
        database = f"sqlite:///{folder / 'demo.db'}"
        if store:
            database = stack.enter_context(temporary_database(store, "notifications_demo"))
        if transport:
            queues = [queue_of(audience) for audience in Audience]
            stack.enter_context(own_queues(transport, EXCHANGE, queues))
        migrate(database)
        yield Environment(folder=folder, database=database, broker=transport)
