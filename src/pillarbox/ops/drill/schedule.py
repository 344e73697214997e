"""The schedule of faults: the same seed and the same kinds give the same faults in the same order."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal, get_args

FaultKind = Literal[
    "kill",
    "freeze",
    "stale-settlement",
    "blocked-settlement",
    "drain",
    "kill-consumer",
    "unroutable",
    "cut-database",
    "cut-broker",
]
KINDS: tuple[FaultKind, ...] = get_args(FaultKind)
DESCRIPTIONS: dict[FaultKind, str] = {
    "kill": "SIGKILL of a relay with messages in flight",
    "freeze": "SIGSTOP of a relay past its lease, then SIGCONT",
    "stale-settlement": "a relay freezes before a settlement and continues when others own its lanes",
    "blocked-settlement": "SIGKILL of a relay whose settlement waits for a lock (PostgreSQL)",
    "drain": "SIGTERM of a relay, which another one replaces",
    "kill-consumer": "SIGKILL of a consumer with messages in flight",
    "unroutable": "the broker cannot route messages for a while (RabbitMQ)",
    "cut-database": "the hooks cut off and restore the database",
    "cut-broker": "the hooks cut off and restore the broker",
}
WEIGHTS: dict[FaultKind, int] = {"kill": 4, "drain": 2}
"""How often a kind occurs in a round; others once."""
CRASHES: tuple[FaultKind, ...] = ("kill", "freeze", "stale-settlement", "blocked-settlement")
"""Faults after which one relay may send again what it had in flight."""
OUTAGES: tuple[FaultKind, ...] = ("cut-database", "cut-broker")
"""Faults after which every relay may."""
POINTS = (
    "before-fetch",
    "after-fetch",
    "before-send",
    "after-send",
    "before-confirm",
    "after-confirm",
    "before-settle",
    "after-settle",
)
"""Where a relay is killed or frozen."""
ANYWHERE = ""
MOST_HITS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFault:
    """A fault that is still to come."""

    kind: FaultKind
    pause: float
    """Seconds before it, in addition to the recovery from the last one."""
    victim: int
    """Any number: it selects one of the processes that can be hit."""
    point: str
    """One of POINTS, or ANYWHERE."""
    hits: int
    """At which hit of the point."""
    seconds: float
    """How long an outage lasts."""


@dataclass(slots=True, kw_only=True)
class ExecutedFault:
    """A fault that was executed."""

    kind: FaultKind
    began: float
    """Monotonic time."""
    ended: float = 0.0
    recovers_from: float = 0.0
    """When the recovery begins: at the kill or the freeze, or at the end of an outage or of a pause."""
    took_effect: bool = False
    in_flight: int = 0
    """Messages that the victim had fetched and not settled. It reports them before each send, so that it cannot have
    sent more."""
    victim: str = ""
    point: str = ""
    note: str = ""


def schedule(seed: int, kinds: Collection[FaultKind], *, interval: float) -> Iterator[PlannedFault]:
    """Yield faults without end, in rounds that contain each kind; interval: mean seconds between two faults.

    The first one is a kill, if that is among the kinds.
    """
    rng = random.Random(seed)  # noqa: S311 - not for secrets
    first = True
    while True:
        planned: list[FaultKind] = [kind for kind in KINDS if kind in kinds for _ in range(WEIGHTS.get(kind, 1))]
        rng.shuffle(planned)
        if first and "kill" in planned:
            planned.remove("kill")
            planned.insert(0, "kill")
        first = False
        for kind in planned:
            yield PlannedFault(
                kind=kind,
                pause=rng.uniform(0, 2 * interval),
                victim=rng.randrange(1 << 16),
                point=rng.choice((*POINTS, ANYWHERE)),
                hits=rng.randint(1, MOST_HITS),
                seconds=rng.uniform(1, 4),
            )
