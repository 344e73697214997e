"""How a relay works: figures with their units and defaults, and the relations between them, checked at the start."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from pillarbox.core import stats
from pillarbox.core.clock import Duration, seconds
from pillarbox.core.errors import ConfigurationError
from pillarbox.core.retention import Retention
from pillarbox.core.retry import ExponentialBackoff, Jitter, RetryPolicy
from pillarbox.core.row import RETENTION
from pillarbox.core.text import Size, size_in_bytes
from pillarbox.relay.routing import MOST_BY_TYPE

SHORTEST_PROBE = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerConfig:
    """How often a relay probes a destination that is unavailable. Raises ConfigurationError.

    The delay doubles from `probe` up to `max`, with jitter. The first success closes the breaker, and so does a
    transport that could reconnect.
    """

    probe: Duration = "1s"
    """The delay before the first probe."""
    max: Duration = "2s"
    """The longest delay between two probes."""
    jitter: Jitter = "full"
    """As of a retry: `full` keeps many relays from probing at the same moment, `none` keeps the delays as they are."""

    def __post_init__(self) -> None:
        probe, longest = (seconds(getattr(self, name), field=f"relay.breaker.{name}") for name in ("probe", "max"))
        if probe < SHORTEST_PROBE:
            raise ConfigurationError(f"relay.breaker.probe is {self.probe}: at least 10ms, or the probes would spin")
        if self.jitter not in get_args(Jitter):
            raise ConfigurationError(f'relay.breaker.jitter is "none", "full" or "additive", not {self.jitter!r}')
        if probe > longest:
            raise ConfigurationError(
                f"relay.breaker.probe {self.probe} is longer than relay.breaker.max {self.max}: "
                "raise max or lower probe"
            )

    @property
    def policy(self) -> RetryPolicy:
        """The delays as a policy without an end."""
        return ExponentialBackoff(base=self.probe, max=self.max, jitter=self.jitter, max_attempts=0)


GRACE = 1.0
"""Seconds that a transport has, beyond `send_timeout`, to say itself what became of a send."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayConfig:
    """Raises ConfigurationError, naming the setting, for a figure or a relation that cannot work."""

    enabled: bool = True
    """False: every way to run it returns at once; for applications that switch it by configuration."""
    batch_size: int = 500
    """Messages per read and per settlement."""
    in_flight: int = 3
    """Batches in hand at once: what is in hand is at most this times the batch, whatever the backlog."""
    max_in_flight_bytes: Size = "64 MiB"
    """Payload and headers of what is in hand at once; an event that is larger goes alone."""
    max_destinations: int = MOST_BY_TYPE
    """How many destinations event types make, where there are no routes; events of further types have no route."""
    poll_interval: Duration = "1s"
    """The longest pause between two looks."""
    initial_delay: Duration = "0s"
    lease: Duration = "15s"
    """How long others wait before they take the lanes of a relay that no longer renews."""
    heartbeat: Duration = "1s"
    send_timeout: Duration = "10s"
    """How long a send may take. The lease must be longer by a second and two heartbeats at least."""
    drain_timeout: Duration = "30s"
    stall_limit: Duration = "60s"
    """An event loop silent for longer gives its lanes up."""
    adaptive: bool = True
    """False with wakeup="none": the relay fetches every poll_interval."""
    wakeup: Literal["notify", "none"] = "notify"
    """"notify": a commit wakes the sleeping relay; "none": the relay only polls."""
    outages: Literal["wait", "count"] = "wait"
    """"count" charges an outage against the attempts of the messages it hits."""
    on_exhausted: Literal["skip", "block"] = "skip"
    breaker: BreakerConfig = field(default_factory=BreakerConfig)
    """How often an unavailable destination is probed."""
    at_most_once: bool = False
    """Whether a message whose send was begun by a relay that died is dead-lettered instead of sent again; for a store
    with a ledger."""
    history: Duration | None = "7 days"
    """How long delivered messages are kept; None: for ever."""
    dead: Duration | None = "90 days"
    """How long dead letters are kept; None: for ever."""
    receipts: Duration | None = RETENTION
    """How long receipts of the inbox are kept, but never shorter than dead letters; None: for ever."""
    ledger: Duration | None = "30 days"
    """How long the ledger remembers what was sent; None: for ever."""
    audit: Duration | None = "365 days"
    """How long it is kept what people did; None: for ever."""

    def __post_init__(self) -> None:
        for name in ("batch_size", "in_flight", "max_destinations"):
            if getattr(self, name) < 1:
                raise ConfigurationError(f"relay.{name} is {getattr(self, name)}: at least 1")
        if self.max_bytes < 1:
            raise ConfigurationError(f"relay.max_in_flight_bytes is {self.max_in_flight_bytes}: at least 1 byte")
        lease, beat = seconds(self.lease, field="relay.lease"), seconds(self.heartbeat, field="relay.heartbeat")
        seconds(self.send_timeout, field="relay.send_timeout")
        for name in ("poll_interval", "initial_delay", "drain_timeout", "stall_limit"):
            seconds(getattr(self, name), field=f"relay.{name}")
        for name in ("history", "dead", "receipts", "ledger", "audit"):
            if (kept := getattr(self, name)) is not None:
                seconds(kept, field=f"relay.{name}")
        if beat * 3 > lease:
            raise ConfigurationError(
                f"relay.heartbeat {self.heartbeat} is too slow for relay.lease {self.lease}: "
                "three must fit, so that two may fail"
            )
        if seconds(self.stall_limit) < 2 * beat:
            raise ConfigurationError(
                f"relay.stall_limit {self.stall_limit} is too short for relay.heartbeat {self.heartbeat}: "
                "give a busy event loop two heartbeats at least"
            )
        if lease < (least := self.longest_send + 2 * beat):
            raise ConfigurationError(
                f"relay.send_timeout {self.send_timeout} is too long for relay.lease {self.lease}: a send must end "
                f"before another relay may take its lane; set relay.lease to at least {least:g}s (relay.send_timeout, "
                "one second and two heartbeats), or shorten relay.send_timeout"
            )
        if self.outages not in ("wait", "count"):
            raise ConfigurationError(f'relay.outages is "wait" or "count", not {self.outages!r}')
        if self.wakeup not in ("notify", "none"):
            raise ConfigurationError(f'relay.wakeup is "notify" or "none", not {self.wakeup!r}')
        if self.on_exhausted not in ("skip", "block"):
            raise ConfigurationError(f'relay.on_exhausted is "skip" or "block", not {self.on_exhausted!r}')

    @property
    def max_bytes(self) -> int:
        return size_in_bytes(self.max_in_flight_bytes, field="relay.max_in_flight_bytes")

    @property
    def longest_send(self) -> float:
        """Seconds after which a send has ended or was given up: the transport's own time and a little more."""
        return seconds(self.send_timeout) + GRACE

    @property
    def max_in_flight(self) -> int:
        return self.batch_size * self.in_flight

    @property
    def min_batch(self) -> int:
        """How many messages are worth a statement at once, where others may follow in a moment."""
        return max(1, self.max_in_flight // 8)

    @property
    def retention(self) -> Retention:
        """Receipts are kept as long as dead letters: a person may send one again that a consumer had already."""
        history, dead, receipts, ledger, audit = (
            None if kept is None else seconds(kept)
            for kept in (self.history, self.dead, self.receipts, self.ledger, self.audit)
        )
        return Retention(
            history=history,
            dead=dead,
            receipts=None if receipts is None or dead is None else max(receipts, dead),
            ledger=ledger,
            audit=audit,
            samples=stats.KEPT,
        )
