"""Where a demo plays: the folder, the store, the way out. The same value in every process of it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, Self
from urllib.parse import urlsplit

from pillarbox.admin.admin import AdminStore
from pillarbox.core.errors import ConfigurationError
from pillarbox.relay.config import RelayConfig

Sabotage = Literal["loss", "disorder", "phantom", "repeats"]

CONFIG = RelayConfig(
    batch_size=100,
    in_flight=2,
    poll_interval="200ms",
    lease="3s",  # short, because somebody watches how long a killed relay's lanes lie idle
    heartbeat="500ms",
    send_timeout="1s",
    drain_timeout="20s",
)

SHOP_FILE = "shop.db"
LEDGER_FILE = "ledger.txt"

HANDLERS = ("mailer", "warehouse", "search")
CONSUMER = "consumer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Raises ConfigurationError for a store or a transport on which the demo cannot play."""

    folder: Path
    """Everything the demo writes outside a server lies here."""
    name: str
    """The schema on PostgreSQL and the queue on RabbitMQ; nothing outside them is touched."""
    store: str = ""
    """postgresql://…; '' is a SQLite file in the folder."""
    transport: str = ""
    """amqp://…; '' are handlers in the relay's process."""
    sabotage: Sabotage | None = None
    """How the first receiver cheats in the ledger, to show that the verdict notices."""

    def __post_init__(self) -> None:
        if self.store and not self.store.startswith(("postgresql://", "postgres://")):
            raise ConfigurationError("the demo plays on SQLite, or on PostgreSQL with --store postgresql://…")
        if self.transport and not self.transport.startswith(("amqp://", "amqps://")):
            raise ConfigurationError("the demo sends to handlers, or to RabbitMQ with --transport amqp://…")

    @property
    def shop_file(self) -> Path:
        return self.folder / SHOP_FILE

    @property
    def ledger(self) -> Path:
        return self.folder / LEDGER_FILE

    @property
    def receivers(self) -> tuple[str, ...]:
        """Who writes the ledger; each must get every event."""
        return (CONSUMER,) if self.transport else HANDLERS

    @property
    def title(self) -> str:
        """The way of the events, without any password."""
        store = f"PostgreSQL at {_host(self.store)}" if self.store else "SQLite"
        way = f"RabbitMQ at {_host(self.transport)} → a consumer" if self.transport else "three handlers"
        return f"{store} → relay → {way}"

    def open_store(self) -> AdminStore:
        """The outbox of this scene."""
        if not self.store:
            from pillarbox.stores.sqlite import SqliteStore

            return SqliteStore(self.shop_file)
        try:
            from pillarbox.stores.postgres import PostgresStore
        except ImportError as missing:
            raise ConfigurationError(str(missing)) from missing
        return PostgresStore(self.store, schema=self.name)

    async def check_transport(self) -> None:
        """Raises ConfigurationError or UnavailableError, in words for people, if the broker cannot be reached."""
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
        """One line, from which `load` makes the same scene."""
        return json.dumps(asdict(self) | {"folder": str(self.folder)})

    @classmethod
    def load(cls, line: str) -> Self:
        fields = json.loads(line)
        return cls(**fields | {"folder": Path(fields["folder"])})


def _host(url: str) -> str:
    try:
        place = urlsplit(url)
        return f"{place.hostname or 'localhost'}{f':{place.port}' if place.port else ''}"
    except ValueError:
        raise ConfigurationError("the port in the URL is no number") from None
