"""Record events from the command line, one transaction per batch, in the store of the settings."""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox import schemes
from pillarbox.core.event import Event
from pillarbox.ops.importing import installed
from pillarbox.ops.settings import Settings
from pillarbox.ops.wiring import make_outbox


class Recorder:
    """Records on its own connection, which is opened on first use. Raises ConfigurationError."""

    def __init__(self, settings: Settings) -> None:
        url = settings.store.url
        self._outbox = make_outbox(settings)
        with installed():
            self._producer = schemes.store_plugin(schemes.scheme_of(url)).producer(url)

    async def record(self, events: Sequence[Event]) -> None:
        """Record these events and commit.

        Raises RecordError, SchemaError or StoreUnavailableError, and then nothing was recorded.
        """
        async with self._producer.transaction() as connection:
            if self._producer.awaited:
                await self._outbox.arecord(connection, *events)
            else:
                self._outbox.record(connection, *events)

    async def aclose(self) -> None:
        await self._producer.aclose()
