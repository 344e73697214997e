"""The cells of a run with their contenders, for a quick and for a full run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.draining import Draining
from benchmarks.embedded import Embedded

PUBLISHER = "benchmarks.workers.publisher"
PIPELINED = {"ordering": "pipelined"}


@dataclass(frozen=True, slots=True)
class Skipped:
    """A contender that cannot run, and the reason."""

    reason: str


Way = Draining | Embedded | Skipped


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A cell to be measured."""

    name: str
    queue: str
    repeats: int
    contenders: Mapping[str, Way]
    counted: bool = False
    """Count Python calls and statements in a run of its own."""
    windows: tuple[int, ...] = ()
    """Measure how fast the queue confirms with this many messages in flight."""

    @property
    def turns(self) -> int:
        taking_part = [way for way in self.contenders.values() if not isinstance(way, Skipped)]
        return len(taking_part) * (self.repeats + self.counted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much of everything: a quick run takes at most 5 minutes, a whole one at most 60."""

    quick: bool
    repeats: int
    events: int
    raw: int
    """Messages of one measurement of the raw limit."""
    confirms: int
    """Messages of one measurement with one message in flight; more with more."""
    counted: int
    """Events of a run in which calls and statements are counted; those of the relay's start are among them."""
    hot: int
    """Events of a single key."""
    large: int
    """Events of the large backlog."""
    relays: tuple[int, ...]
    latency: Mapping[int, float]
    """Seconds by rate."""
    latency_repeats: int
    peer_seconds: float
    peer_queues: tuple[str, ...]
    peer_defaults: bool
    """Whether peers take part with their default settings, too."""


QUICK = Sizes(
    quick=True,
    repeats=1,
    events=15_000,
    raw=20_000,
    confirms=1_000,
    counted=5_000,
    hot=500,
    large=50_000,
    relays=(1, 2),
    latency={4: 5, 200: 4, 2000: 2},
    latency_repeats=1,
    peer_seconds=2,
    peer_queues=("quorum",),
    peer_defaults=False,
)
WHOLE = Sizes(
    quick=False,
    repeats=5,
    events=60_000,
    raw=20_000,
    confirms=1_000,
    counted=20_000,
    hot=3_000,
    large=1_000_000,
    relays=(1, 2, 4),
    latency={4: 30, 200: 20, 2000: 10},
    latency_repeats=3,
    peer_seconds=5,
    peer_queues=("quorum", "classic"),
    peer_defaults=True,
)


def plans(sizes: Sizes) -> list[Plan]:
    """The cells in which Pillarbox is compared with the broker and with itself."""
    return [
        *(_queue(sizes, queue) for queue in ("quorum", "classic")),
        _options(sizes),
        _hot_keys(sizes),
        _relays(sizes),
        _backlogs(sizes),
        _embedded(sizes),
    ]


def _queue(sizes: Sizes, queue: str) -> Plan:
    return Plan(
        name=queue,
        queue=queue,
        repeats=sizes.repeats,
        counted=True,
        contenders={
            "history off": Draining(events=sizes.events),
            "history on": Draining(events=sizes.events, options={"history": True}),
            "transport alone": Draining(events=sizes.events, module=PUBLISHER, fill=""),
        },
    )


def _options(sizes: Sizes) -> Plan:
    options: dict[str, dict[str, object]] = {
        "plain": {},
        "envelope": {"body": "envelope"},
        "CloudEvents": {"body": "cloudevents"},
        "ledger": {"ledger": True},
        "metrics on": {"metrics": True},
        "batches of 1,000": {"config": {"batch_size": 1000}},
    }
    return Plan(
        name="options",
        queue="quorum",
        repeats=min(3, sizes.repeats),
        contenders={name: Draining(events=sizes.events, options=given) for name, given in options.items()},
    )


def _hot_keys(sizes: Sizes) -> Plan:
    return Plan(
        name="hot keys",
        queue="quorum",
        repeats=min(3, sizes.repeats),
        counted=True,
        windows=(1, 50),
        contenders={
            "20,000 keys": Draining(events=sizes.events),
            "50 keys, strict": Draining(events=sizes.hot * 6, keys=50),
            "1 key, strict": Draining(events=sizes.hot, keys=1),
            "transport alone, 50 in flight": _alone(sizes.hot * 6, in_flight=50),
            "transport alone, 1 in flight": _alone(sizes.hot, in_flight=1),
            "1 key, pipelined": Draining(events=sizes.events, keys=1, options={"destination": PIPELINED}),
        },
    )


def _alone(events: int, *, in_flight: int) -> Draining:
    """What strict order leaves to the transport, without a store and a relay."""
    return Draining(events=events, module=PUBLISHER, fill="", options={"in_flight": in_flight})


def _relays(sizes: Sizes) -> Plan:
    return Plan(
        name="relays",
        queue="quorum",
        repeats=min(3, sizes.repeats),
        contenders={
            str(number): Draining(events=sizes.events, relays=number, while_running=True) for number in sizes.relays
        },
    )


def _backlogs(sizes: Sizes) -> Plan:
    return Plan(
        name="backlogs",
        queue="quorum",
        repeats=1,
        contenders={
            f"{events:,} events": Draining(events=events, options={"history": True}) for events in (10_000, sizes.large)
        },
    )


def _embedded(sizes: Sizes) -> Plan:
    return Plan(
        name="embedded",
        queue="",
        repeats=sizes.repeats,
        contenders={
            f"history {'on' if history else 'off'}": Embedded(events=sizes.events, history=history)
            for history in (False, True)
        },
    )
