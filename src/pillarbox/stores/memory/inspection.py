"""How the outbox fares."""

from __future__ import annotations

from pillarbox.core.overview import COUNTED, LaneView, Overview, RelayView
from pillarbox.stores.memory.tables import Tables, verb


class MemoryInspection:
    """See `pillarbox.core.store.Inspection`."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @verb
    def overview(self) -> Overview:
        now = self._tables.now()
        recorded = [stored.message.recorded_at for stored in self._tables.waiting.values()]
        return Overview(
            backlog=len(recorded),
            oldest=(now - min(recorded)).total_seconds() if recorded else None,
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
                )
                for _, relay in sorted(self._tables.relays.items())
            ],
        )
