"""The shared context of a relay, for tests of one part."""

from __future__ import annotations

from pillarbox.core.clock import Clock
from pillarbox.core.store import Store
from pillarbox.relay.config import RelayConfig
from pillarbox.relay.relay import RelayContext, make_context
from pillarbox.relay.routing import Routing
from pillarbox.stores.memory import MemoryStore
from pillarbox.transports.memory import MemoryTransport


def relay_context(
    store: Store | None = None, *, config: RelayConfig | None = None, clock: Clock | None = None
) -> RelayContext:
    """The context of a relay with one transport and neither routes nor destinations."""
    return make_context(
        store=store or MemoryStore(lanes=1),
        routing=Routing((), {}, {"memory": MemoryTransport()}),
        config=config,
        clock=clock,
    )
