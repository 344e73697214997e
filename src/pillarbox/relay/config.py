"""The settings of a relay: each field defines name, unit, default, bounds and help of one setting.

`[relay]` of a settings file has the same names, and is read into these classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from pillarbox.core import statistics
from pillarbox.core.clock import Duration, seconds
from pillarbox.core.payload import Size, size_in_bytes
from pillarbox.core.retry import RetryPolicy
from pillarbox.core.rows import INBOX_RETENTION
from pillarbox.core.store import Retention
from pillarbox.relay.routing import MAX_BY_TYPE
from pillarbox.retry_policies import ExponentialBackoff, Jitter
from pillarbox.settings import (
    ByteSize,
    Choice,
    Flag,
    InvalidSettingError,
    Span,
    Whole,
    check_settings,
    documented,
    part,
    setting,
)
from pillarbox.settings.shared import SEND_TIMEOUT, PresetName, WakeupMode, check_preset, wakeup_setting

Outages = Literal["wait", "count"]
OnExhausted = Literal["skip", "block"]

RESULT_GRACE = 1.0
"""Seconds beyond `send_timeout` in which a transport can still report the result of a send."""


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerConfig:
    """How often a relay probes an unavailable destination.

    The delay doubles from `first_delay` up to `max_delay`, with jitter. The first success closes the breaker, and so
    does a transport that reconnects. Raises ConfigurationError for a value that cannot work.
    """

    first_delay: Duration = setting("1s", Span(minimum="10ms"), "The delay before the first probe.")
    max_delay: Duration = setting("2s", Span(minimum="10ms"), "The longest delay between two probes.")
    jitter: Jitter = setting(
        "full",
        Choice.of(Jitter),
        "Randomness: `full` takes any delay from zero to the computed one, so that many relays do not probe at "
        "once; `additive` adds up to `first_delay`, `none` adds nothing.",
    )

    def __post_init__(self) -> None:
        check_settings(self)
        if seconds(self.first_delay) > seconds(self.max_delay):
            raise InvalidSettingError(
                self,
                "{first_delay} is {first_delay.value}: it must not be longer than {max_delay} ({max_delay.value}); "
                "raise max_delay or lower first_delay",
            )

    @property
    def policy(self) -> RetryPolicy:
        """The delays as a policy without an end."""
        return ExponentialBackoff(
            base=self.first_delay, max_delay=self.max_delay, jitter=self.jitter, max_attempts="unlimited"
        )


def _kept(default: Duration, help: str) -> Duration:
    kept: Duration = setting(default, Span(("forever",), zero="delete at the next opportunity"), help)
    return kept


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionConfig:
    """How long rows are kept after their work is done.

    Raises ConfigurationError for a value that cannot work.
    """

    history: Duration = _kept("7 days", "How long delivered events are kept.")
    dead: Duration = _kept("90 days", "How long dead letters are kept.")
    inbox: Duration = _kept(
        INBOX_RETENTION,
        "How long processed-event records and consumer statistics of the inbox are kept, but never "
        "shorter than dead letters: an operator may retry a dead letter that a consumer has processed.",
    )
    ledger: Duration = _kept("30 days", "How long the ledger knows that an event was sent.")
    audit: Duration = _kept("365 days", "How long the audit log of operator requests is kept.")

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def in_seconds(self) -> Retention:
        """The periods in seconds, for a store; None: forever."""
        history, dead, inbox, ledger, audit = (
            None if kept == "forever" else seconds(kept)
            for kept in (self.history, self.dead, self.inbox, self.ledger, self.audit)
        )
        return Retention(
            history=history,
            dead=dead,
            inbox=None if inbox is None or dead is None else max(inbox, dead),
            ledger=ledger,
            audit=audit,
            samples=statistics.SAMPLE_RETENTION,
        )


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class RelayConfig:
    """How a relay works.

    Raises ConfigurationError for a value or a relation of values that cannot work.
    """

    enabled: bool = setting(
        True,
        Flag(),
        "`false`: `pillarbox relay` and the methods that run a relay return at once.",
        formerly={"outbox.publisher.enabled": "", "outbox.processor.enabled": ""},
    )
    batch_size: int = setting(
        500,
        Whole("events"),
        "Events per fetch and per settlement.",
        formerly={
            "notification.outbox.batch.size": "",
            "outbox.publisher.batch-size": "",
            "outbox.processor.batch-size": "",
            "batch_size": "",
        },
    )
    max_in_flight_batches: int = setting(3, Whole("batches"), "Batches that are fetched and not yet settled, at most.")
    max_in_flight_bytes: Size = setting(
        "64 MiB",
        ByteSize(),
        "Payload, headers and ids of all events in flight, at most. A larger event is sent alone.",
    )
    max_destinations: int = setting(
        MAX_BY_TYPE,
        Whole("destinations"),
        "Without routes: how many destinations event types create. Events of further types have no route and wait.",
    )
    poll_interval: Duration = setting(
        "1s",
        Span(),
        "The longest pause between two fetches.",
        formerly={
            "notification.outbox.poll.interval": "milliseconds there",
            "outbox.publisher.polling-interval": "",
            "outbox.processor.interval": "milliseconds there",
            "poll_interval": "",
        },
    )
    initial_delay: Duration = setting(
        "0s",
        Span(zero="fetch at once"),
        "The pause before the first fetch.",
        formerly={"notification.outbox.initial.delay": "milliseconds there"},
    )
    lease: Duration = setting(
        "15s",
        Span(),
        "How long other relays wait before they take over the lanes of a relay that stopped renewing them.",
        formerly={"outbox.processor.lock-stale-timeout-seconds": "seconds there; 15s is enough here"},
    )
    heartbeat_interval: Duration = setting(
        "1s", Span(), "How often a relay renews its lease. `lease` is at least 3 times this."
    )
    send_timeout: Duration = setting(
        SEND_TIMEOUT,
        Span(),
        "How long a send may take. `lease` is at least the sum of this, 1 s and 2 × `heartbeat_interval`.",
    )
    drain_timeout: Duration = setting(
        "30s", Span(zero="do not wait"), "How long a stopping relay waits for events in flight."
    )
    stall_limit: Duration = setting(
        "1m", Span(), "A relay whose event loop does not respond for this long releases its lanes."
    )
    adaptive: bool = setting(
        True,
        Flag(),
        "Fetch more often while there are events. `false` with `wakeup` `none`: fetch every `poll_interval`.",
    )
    wakeup: WakeupMode = wakeup_setting(
        "`notify`: the commit of a producer wakes the relay. `none`: the relay only polls."
    )
    outages: Outages = setting(
        "wait",
        Choice.of(Outages),
        "`wait`: an unavailable destination defers its events. `count`: it uses up their `max_attempts`.",
    )
    on_exhausted: OnExhausted = setting(
        "skip",
        Choice.of(OnExhausted),
        "After the last attempt of an event: `skip` dead-letters it and sends the next event of its key, `block` holds "
        "the key until an operator decides.",
    )
    at_most_once: bool = setting(
        False,
        Flag(),
        "Dead-letter an event, instead of sending it again, if a relay crashed while it sent it. Requires "
        "`store.ledger = true`; the default `history` does not suffice.",
    )
    breaker: BreakerConfig = part(BreakerConfig)
    retention: RetentionConfig = part(RetentionConfig)

    def __post_init__(self) -> None:
        check_settings(self)
        lease, beat = seconds(self.lease), seconds(self.heartbeat_interval)
        if beat * 3 > lease:
            raise InvalidSettingError(
                self,
                "{lease} is {lease.value}: it must be at least 3 × {heartbeat_interval} ({heartbeat_interval.value}), "
                "so that two renewals may fail; raise the lease or lower the heartbeat interval",
            )
        if seconds(self.stall_limit) < 2 * beat:
            raise InvalidSettingError(
                self,
                "{stall_limit} is {stall_limit.value}: it must be at least 2 × {heartbeat_interval} "
                "({heartbeat_interval.value}), so that a busy event loop keeps its lanes; raise the limit or lower the "
                "heartbeat interval",
            )
        if lease < (least := self.max_send_seconds + 2 * beat):
            raise InvalidSettingError(
                self,
                "{lease} is {lease.value}: it must be at least {least}s, which is {send_timeout} "
                "({send_timeout.value}), one second and 2 × {heartbeat_interval} ({heartbeat_interval.value}), so that "
                "a send ends before another relay takes over its lane; raise the lease or lower the send timeout",
                least=f"{least:g}",
            )

    @classmethod
    def preset(cls, name: PresetName) -> RelayConfig:
        """The values of a preset; `ExponentialBackoff.preset` has its retry policy. Raises ConfigurationError."""
        return PRESETS[check_preset(name)].config

    @property
    def max_bytes(self) -> int:
        """`max_in_flight_bytes` as a number."""
        return size_in_bytes(self.max_in_flight_bytes, field="max_in_flight_bytes")

    @property
    def max_send_seconds(self) -> float:
        """Seconds after which a send has ended or was abandoned."""
        return seconds(self.send_timeout) + RESULT_GRACE

    @property
    def max_in_flight(self) -> int:
        """Events in flight, at most."""
        return self.batch_size * self.max_in_flight_batches

    @property
    def min_batch(self) -> int:
        """How many events are worth a statement at once, where others may follow in a moment."""
        return max(1, self.max_in_flight // 8)


_PRESETS: tuple[tuple[PresetName, Duration, int], ...] = (
    ("development", "5s", 50),
    ("staging", "5s", 100),
    ("production", "5s", 100),
    ("high-volume", "1s", 500),
)
"""Name, `poll_interval`, `batch_size`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """Values that belong together, for the kind of environment a relay runs in. A setting that is written out wins."""

    config: RelayConfig
    retry: ExponentialBackoff


PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        name: Preset(
            config=RelayConfig(poll_interval=poll_interval, batch_size=batch_size),
            retry=ExponentialBackoff.preset(name),
        )
        for name, poll_interval, batch_size in _PRESETS
    }
)
