"""The composition root: it connects the modules."""

from __future__ import annotations

from typing import Self

from sqlalchemy import create_engine, make_url
from sqlalchemy.orm import sessionmaker

from examples.school import notifications
from examples.school.attendance import AttendanceService
from examples.school.grades import GradesService
from examples.school.tables import Base
from pillarbox import ExponentialBackoff, Handlers, Outbox, Relay, RelayConfig
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.sqlite import SqliteStore

CONFIG = RelayConfig(poll_interval="10s", batch_size=50, lease="5m")
RETRY = ExponentialBackoff(base="30s", max_delay="1800s", jitter="additive", max_attempts=10)


class School:
    """`url` is postgresql://… or sqlite:///school.db; `send` reaches the parents."""

    def __init__(self, url: str, send: notifications.Send) -> None:
        postgres = url.startswith("postgresql://")
        self._store = PostgresStore(url) if postgres else SqliteStore(url)
        self._engine = create_engine(make_url(url).set(drivername="postgresql+psycopg") if postgres else url)
        sessions = sessionmaker(self._engine)
        outbox = Outbox()
        self.attendance = AttendanceService(sessions, outbox)
        self.grades = GradesService(sessions, outbox)
        self.notifications = notifications.NotificationService(sessions, send)

    async def __aenter__(self) -> Self:
        await self._store.schema.apply()
        Base.metadata.create_all(self._engine)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._engine.dispose()
        await self._store.aclose()

    def relay(self) -> Relay:
        """Any number of them, in any number of processes."""
        handlers = Handlers()
        notifications.register(handlers, self.notifications)
        return Relay(store=self._store, transports={"handlers": handlers}, retry=RETRY, config=CONFIG, name="default")
