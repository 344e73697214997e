"""List relays, and ask them to drain: the same for the command line and the console."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.overview import RelayView
from pillarbox.core.lane import EVERY_RELAY
from pillarbox.ops.names import check_name


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayWithLanes:
    """A relay, and how many lanes it owns."""

    view: RelayView
    lanes: int


async def list_relays(store: AdminStore) -> list[RelayWithLanes]:
    """Return running relays, and crashed ones that no other relay has taken over yet."""
    seen = await store.admin.inspection.overview()
    lanes = Counter(lane.owner for lane in seen.lanes)
    return [RelayWithLanes(view=relay, lanes=lanes[relay.id]) for relay in seen.relays]


async def drain_relays(store: AdminStore, names: Sequence[str], *, by: str) -> list[str]:
    """Request that these relays, by id or name, or all if none is named, drain; returns the ids of the relays.

    Raises ConfigurationError for an invalid name and for `EVERY_RELAY`, which is reserved.
    """
    for name in names:
        check_name("relay", name, every=EVERY_RELAY)
    asked = [one for name in (names or [EVERY_RELAY]) for one in await store.admin.requests.drain(name, by=by)]
    return list(dict.fromkeys(asked))
