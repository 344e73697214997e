"""What happens in one schedule: derived from its seed, printed if the schedule fails."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from pillarbox.relay.config import RelayConfig

CONFIG = RelayConfig(
    batch_size=8,
    max_in_flight_batches=2,
    poll_interval="500ms",
    lease="6s",
    heartbeat_interval="1s",
    send_timeout="3s",
    drain_timeout="10s",
)
EDITED = b'{"edited":true}'
"""How an operator edits a payload."""
SLOW = 9.0
"""Longer than the lease of the simulated relays: only renewals keep the lanes during such a send."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The intensity of each kind of event and fault."""

    relays: int
    keys: int
    events: int
    destinations: int
    kills: int
    outages: int
    joins: int
    freezes: int
    rejected: float
    poisoned: float
    delayed: float
    rolled_back: float
    latency: float
    """Seconds of the longest send. Above `send_timeout` the transport must have its own timeouts, like handlers."""
    burst: int = 1
    """Events of a key in one transaction, at most: the backlog that a relay finds at once."""
    stragglers: int = 0
    """Events of a key whose transactions stay open while later ones commit: their own order is not guaranteed, but
    they must not change the order of others.
    """
    partitions: int = 0
    """How often the connection between a relay and the store fails for up to three leases, also for results."""
    expiries: int = 0
    """How often a live relay loses its lease, and may acquire its lanes again at once."""
    requests: int = 0
    """How often an operator retries, reschedules, discards or dead-letters a pending event, or edits a dead letter."""
    store_latency: float = 0.0
    ledger: bool = False
    pipelined: bool = False
    """Several events of a key go in one send; connections are lost in the middle of some."""

    @property
    def slow(self) -> bool:
        return self.latency >= SLOW

    @classmethod
    def drawn(cls, rng: random.Random) -> Plan:
        """Return a plan: half of the schedules have some of everything; the others concentrate on one kind of fault."""
        plan = cls(
            relays=rng.randint(1, 3),
            keys=rng.randint(1, 5),
            events=rng.randint(5, 40),
            destinations=rng.randint(1, 2),
            kills=rng.randint(0, 3),
            outages=rng.randint(0, 2),
            joins=rng.randint(0, 2),
            freezes=rng.randint(0, 2),
            rejected=rng.choice([0, 0.05, 0.3]),
            poisoned=rng.choice([0, 0, 0.1]),
            delayed=rng.choice([0, 0, 0.2]),
            rolled_back=rng.choice([0, 0.2]),
            latency=rng.choice([0.001, 0.05, 1.0, SLOW]),
            burst=rng.choice([1, 4]),
            partitions=rng.choice([0, 0, 1, 2]),
            expiries=rng.choice([0, 0, 1]),
            requests=rng.choice([0, 0, 4]),
            store_latency=rng.choice([0, 0, 0.02, 0.2]),
            ledger=rng.random() < 0.2,
        )
        match rng.randrange(4):
            case 0:
                return plan._with_lanes_that_come_and_go(rng)
            case 1:
                return plan._with_stragglers(rng)
            case _:
                return plan

    def made_pipelined(self) -> Plan:
        """Return the same with pipelined destinations, and a backlog in few keys."""
        return replace(self, pipelined=True, keys=min(self.keys, 2), events=max(self.events, 40), burst=12)

    def _with_lanes_that_come_and_go(self, rng: random.Random) -> Plan:
        """A backlog in one key; results arrive after their lane was lost and acquired again; no other faults."""
        return replace(
            self,
            relays=rng.choice([1, 1, 2]),
            keys=1,
            events=60,
            destinations=1,
            kills=0,
            outages=0,
            joins=0,
            freezes=0,
            rejected=0.3,
            poisoned=0,
            delayed=0,
            latency=3.0,
            burst=12,
            partitions=0,
            expiries=20,
            requests=0,
            store_latency=0.0,
            ledger=False,
        )

    def _with_stragglers(self, rng: random.Random) -> Plan:
        """A backlog in one key; decisions are committed during fetches; there are no other faults."""
        return replace(
            self,
            relays=1,
            keys=1,
            events=100,
            destinations=1,
            kills=0,
            outages=0,
            joins=0,
            freezes=0,
            rejected=0.3,
            poisoned=0,
            delayed=0,
            latency=0.2,
            burst=12,
            stragglers=60,
            partitions=0,
            expiries=0,
            requests=0,
            store_latency=rng.choice([0.1, 0.2, 0.3]),
            ledger=False,
        )
