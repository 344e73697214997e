"""The parts of one relay, wired together: they know each other only through what they are handed here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pillarbox.core.clock import Chance, Clock, seconds
from pillarbox.core.errors import ConfigurationError
from pillarbox.core.observations import Announcer
from pillarbox.core.retry import RetryPolicy
from pillarbox.core.store import Store
from pillarbox.relay.admission import Sorter, Stops
from pillarbox.relay.config import RelayConfig
from pillarbox.relay.crash_guard import Suspicion
from pillarbox.relay.decide import Decider
from pillarbox.relay.destinations import Gates
from pillarbox.relay.fetch import Fetcher
from pillarbox.relay.heartbeat import Progress, Pulse
from pillarbox.relay.idle import IdleWait
from pillarbox.relay.in_flight import InFlight
from pillarbox.relay.lanes import Ownership, Tending
from pillarbox.relay.retention import Figures, Housekeeping
from pillarbox.relay.routing import Routing
from pillarbox.relay.send import Sender
from pillarbox.relay.settle import Settlement


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a relay itself deals with."""

    in_flight: InFlight
    ownership: Ownership
    pulse: Pulse
    idle: IdleWait
    fetcher: Fetcher
    sender: Sender
    decider: Decider
    gates: Gates
    settlement: Settlement
    tending: Tending
    progress: Progress


def assemble(
    *,
    relay: str,
    name: str,
    store: Store,
    routing: Routing,
    policy: RetryPolicy,
    config: RelayConfig,
    clock: Clock,
    chance: Chance,
    announce: Announcer,
) -> Parts:
    """Make the parts of a relay. Raises ConfigurationError."""
    if config.at_most_once and (store.ledger is None or not store.ledger.keeps_notes):
        raise ConfigurationError(
            "relay.at_most_once needs a store with a ledger of its own: make the store with ledger=True"
        )
    told: dict[str, Any] = {"relay": relay, "clock": clock, "announce": announce}
    in_flight, stops, pulse = InFlight(), Stops(), Pulse(relay=relay)
    ownership = Ownership(clock, margin=config.longest_send, count=store.lanes.count)
    ownership.on_lost = in_flight.drop_lanes
    gates = Gates(chance=chance, breaker=config.breaker, by_type=routing.by_type, **told)
    for place in routing.places():
        gates.of(place)
    suspicion = Suspicion(window=config.max_in_flight, grace=seconds(config.lease), clock=clock)
    held: dict[str, Any] = {"in_flight": in_flight, "stops": stops, "ownership": ownership}
    figures = Figures()
    settlement = Settlement(
        figures=figures,
        store=store,
        batch=2 * config.batch_size,
        enough=config.min_batch,
        enough_bytes=config.max_bytes // 8,
        chance=chance,
        **held,
        **told,
    )
    settlement.on_passed = suspicion.passed
    ways: dict[str, Any] = {"routing": routing, "gates": gates, "config": config}
    sent: dict[str, Any] = {"settlement": settlement, "chance": chance}
    decider = Decider(policy=policy, gates=gates, config=config, in_flight=in_flight, stops=stops, **sent, **told)
    sender = Sender(
        decider=decider,
        ledger=store.ledger,
        settlement=settlement,
        in_flight=in_flight,
        ownership=ownership,
        **ways,
        **told,
    )
    sorter = Sorter(suspicion=suspicion, **sent, **ways, **held, **told)
    fetcher = Fetcher(store=store, sorter=sorter, suspicion=suspicion, **ways, **held, **told)
    tending = Tending(
        name=name,
        store=store,
        pulse=pulse,
        ownership=ownership,
        suspicion=suspicion,
        in_flight=in_flight,
        gates=gates,
        decider=decider,
        fetcher=fetcher,
        figures=figures,
        housekeeping=Housekeeping(store=store, ownership=ownership, kept=config.retention.in_seconds, **told),
        config=config,
        **told,
    )
    return Parts(
        in_flight=in_flight,
        ownership=ownership,
        pulse=pulse,
        idle=IdleWait(
            relay=relay,
            store=store,
            clock=clock,
            config=config,
            next_reason=lambda: min(gates.next_probe(), fetcher.next_retry()),
        ),
        fetcher=fetcher,
        sender=sender,
        decider=decider,
        gates=gates,
        settlement=settlement,
        tending=tending,
        progress=Progress(
            pulse=pulse, ownership=ownership, sender=sender, settlement=settlement, config=config, **told
        ),
    )
