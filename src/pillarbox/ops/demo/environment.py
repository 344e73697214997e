"""The folder, store and transport of a demo, passed to each of its processes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, Self
from urllib.parse import urlsplit

from pillarbox.admin.admin import AdminStore
from pillarbox.core.errors import ConfigurationError
from pillarbox.relay.config import RelayConfig
from pillarbox.table_names import TableNames

Fault = Literal["loss", "reordering", "phantom", "duplicates"]

CONFIG = RelayConfig(
    batch_size=100,
    max_in_flight_batches=2,
    poll_interval="200ms",
    lease="3s",  # short: the lanes of a killed relay are idle until its lease expires
    heartbeat_interval="500ms",
    send_timeout="1s",
    drain_timeout="20s",
)

DATABASE_FILE = "shop.db"
LEDGER_FILE = "ledger.txt"

HANDLERS = ("mailer", "warehouse", "search")
CONSUMER = "consumer"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoEnvironment:
    """Where a demo runs. Raises ConfigurationError for a store or a transport that the demo does not support."""

    folder: Path
    """Contains all files of the demo."""
    name: str
    """Name of the schema in PostgreSQL and of the queue in RabbitMQ; the demo changes nothing outside them."""
    store: str = ""
    """postgresql://…; empty: a SQLite file in the folder."""
    transport: str = ""
    """amqp://…; empty: handlers in the relay's process."""
    inject: Fault | None = None
    """Fault in the ledger of the first receiver, to show that the verification detects it."""

    def __post_init__(self) -> None:
        if self.store and not self.store.startswith(("postgresql://", "postgres://")):
            raise ConfigurationError("the demo supports SQLite, or PostgreSQL with --store postgresql://…")
        if self.transport and not self.transport.startswith(("amqp://", "amqps://")):
            raise ConfigurationError("the demo supports handlers, or RabbitMQ with --transport amqp://…")

    @property
    def database_file(self) -> Path:
        return self.folder / DATABASE_FILE

    @property
    def ledger(self) -> Path:
        return self.folder / LEDGER_FILE

    @property
    def receivers(self) -> tuple[str, ...]:
        """Names of the receivers that write the ledger; each must receive every event."""
        return (CONSUMER,) if self.transport else HANDLERS

    @property
    def title(self) -> str:
        """The path of the events, without passwords."""
        store = f"PostgreSQL at {_host(self.store)}" if self.store else "SQLite"
        target = f"RabbitMQ at {_host(self.transport)} → a consumer" if self.transport else "three handlers"
        return f"{store} → relay → {target}"

    def open_store(self) -> AdminStore:
        """Return the store that has the outbox."""
        if not self.store:
            from pillarbox.stores.sqlite import SqliteStore

            return SqliteStore(self.database_file)
        try:
            from pillarbox.stores.postgres import PostgresStore
        except ImportError as missing:
            raise ConfigurationError(str(missing)) from missing
        return PostgresStore(self.store, tables=TableNames(schema=self.name))

    async def check_transport(self) -> None:
        """Raise ConfigurationError or UnavailableError if the broker cannot be reached."""
        if not self.transport:
            return
        try:
            from pillarbox.transports.rabbitmq import RabbitMQTransport
        except ImportError as missing:
            raise ConfigurationError(str(missing)) from missing
        broker = RabbitMQTransport(self.transport)
        try:
            await broker.ping()
        finally:
            await broker.aclose()

    def dump(self) -> str:
        """Return one line that `load` reads."""
        return json.dumps(asdict(self) | {"folder": str(self.folder)})

    @classmethod
    def load(cls, line: str) -> Self:
        fields = json.loads(line)
        return cls(**fields | {"folder": Path(fields["folder"])})


def _host(url: str) -> str:
    try:
        parts = urlsplit(url)
        return f"{parts.hostname or 'localhost'}{f':{parts.port}' if parts.port else ''}"
    except ValueError:
        raise ConfigurationError("the port in the URL is not a number") from None
