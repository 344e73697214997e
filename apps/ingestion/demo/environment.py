"""Prepares the servers of the demo and cleans up afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from apps.ingestion.topology import EVENTS, QUEUES
from apps.runtime.demo_servers import host_of, own_queues, server_of, temporary_database


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The servers and the folder of one demo."""

    folder: Path
    store: str
    transport: str

    @property
    def title(self) -> str:
        """The path of a document, without passwords."""
        store = server_of(self.store)
        way = f"RabbitMQ at {host_of(self.transport)}" if self.transport else "handlers"
        return f"{store} → relay → {way} → validation, enrichment"


@contextmanager
def prepared(store: str, transport: str) -> Iterator[Environment]:
    """Create a temporary database, and check that the broker has no queues of the service. Raises
    ConfigurationError."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="ingestion-demo-")))
        own = f"sqlite:///{folder}/ingestion.db"
        if store:
            own = stack.enter_context(temporary_database(store, "ingestion_demo"))
        if transport:
            stack.enter_context(own_queues(transport, EVENTS, QUEUES))
        yield Environment(folder=folder, store=own, transport=transport)
