"""How the outbox and the inbox fare."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from pillarbox.core.message import Message
from pillarbox.core.overview import COUNTED, ConsumerView, LaneView, Overview, RelayView
from pillarbox.stores.memory.tables import Tables, verb


class MemoryInspection:
    """See `pillarbox.core.store.Inspection`."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @verb
    def overview(self) -> Overview:
        now = self._tables.now()
        since = [at for stored in self._tables.waiting.values() if (at := _since(stored.message)) <= now]
        return Overview(
            backlog=len(self._tables.waiting),
            oldest=(now - min(since)).total_seconds() if since else None,
            exact=True,
            dead=min(len(self._tables.dead), COUNTED + 1),
            lanes=[
                LaneView(number, lane.owner, lane.epoch, lane.crashes) for number, lane in enumerate(self._tables.lanes)
            ],
            relays=[
                RelayView(
                    relay.card.id,
                    relay.card.name,
                    relay.card.host,
                    (relay.lease_until - now).total_seconds(),
                    dict(relay.breakers),
                    relay.card.version,
                    (now - relay.started_at).total_seconds(),
                    len(relay.in_hand),
                    relay.draining,
                )
                for _, relay in sorted(self._tables.relays.items())
            ],
        )

    @verb
    def consumers(self, *, limit: int = 100) -> list[ConsumerView]:
        counts = Counter(receipt.consumer for receipt in self._tables.receipts)
        return [ConsumerView(name, min(count, COUNTED + 1)) for name, count in sorted(counts.items())[:limit]]


def _since(m: Message) -> datetime:
    """From when on it could have left: a delayed one once it is due."""
    return m.recorded_at if m.available_at is None or m.held or m.attempts + m.tries else m.available_at
