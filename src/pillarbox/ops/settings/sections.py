"""Every setting of the store, of recording and of a relay: its kind, its default, and what it means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pillarbox import plugins
from pillarbox.core.ledger import LedgerKind
from pillarbox.core.retry import ExponentialBackoff, RetryPolicy
from pillarbox.core.row import RETENTION
from pillarbox.core.text import payload_limit
from pillarbox.ops.settings.describing import key, part
from pillarbox.ops.settings.health import HealthSettings
from pillarbox.ops.settings.kinds import Choice, LedgerMode, Listen, Moment, Pairs, Size, Span, Text, Truth, Url, Whole
from pillarbox.ops.settings.retrying import BreakerSettings, RetrySettings
from pillarbox.relay.config import BreakerConfig, RelayConfig
from pillarbox.relay.presets import PRESETS

_STORES = Url("store", plugins.STORES, "postgresql://…, sqlite:///file.db or memory://")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """Where events wait."""

    url: str = key(
        _STORES,
        "where the tables are: `postgresql://…` (beyond this machine with `sslmode=verify-full` unless it says "
        "otherwise), `sqlite:///file.db`, `memory://`",
        default="sqlite:///pillarbox.db",
        secret=True,
        formerly={"pool": ""},
    )
    schema: str = key(Text(), "PostgreSQL's schema", default="public")
    prefix: str = key(
        Text(),
        "what the names of the tables begin with",
        default="outbox_",
        formerly={"table_name": "tables are named by their prefix; `schema apply --aliases` adds the usual names"},
    )
    history: str = key(
        Span(("off", "forever")),
        "how long delivered events are kept; `off` deletes them at once",
        default="7 days",
    )
    dead_retention: str = key(Span(("forever",)), "how long events that were given up on are kept", default="90 days")
    inbox_retention: str = key(
        Span(("forever",)),
        "how long receipts and tallies of the inbox are kept; at least as long as dead letters",
        default=RETENTION,
    )
    ledger_retention: str = key(
        Span(("forever",)), "how long the ledger remembers that an event was sent", default="30 days"
    )
    audit_retention: str = key(Span(("forever",)), "how long it is kept what people did", default="365 days")
    max_payload: int = payload_limit("1 MiB")
    """Bytes, from [record]: the tables have the same limit."""
    options: Mapping[str, Any] | None = key(
        Pairs(texts=False), "options of a store that another distribution registers", default=None
    )

    @property
    def keeps_history(self) -> bool:
        return self.history != "off"

    @property
    def history_for(self) -> str | None:
        """None: for ever. What lies there from the time before `off` goes after a week."""
        return "7 days" if self.history == "off" else _unless_forever(self.history)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSettings:
    """How events are recorded."""

    max_payload: str | int = key(Size(), "the largest payload; at most 64 MiB", default="1 MiB")
    duplicate: Literal["error", "ignore"] = key(
        Choice(("error", "ignore")), "what becomes of an event whose id already waits", default="error"
    )
    wakeup: Literal["notify", "none"] = key(
        Choice(("notify", "none")),
        "`notify` wakes a sleeping relay at commit; `none` does not: for two-phase commit",
        default="notify",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RelaySettings:
    """How a relay works."""

    enabled: bool = key(
        Truth(),
        "`false`: the relay says so and ends",
        default=True,
        formerly={"outbox.publisher.enabled": "", "outbox.processor.enabled": ""},
    )
    name: str = key(
        Text(),
        "a label for people; a relay's id is random",
        default="",
        formerly={"outbox.processor.worker-id": "a label only: nothing depends on it"},
    )
    preset: str = key(
        Choice(("none", *PRESETS)),
        "figures that belong together; keys written out win. `high-volume` logs single events from WARNING on only",
        default="none",
    )
    batch_size: int = key(
        Whole(1),
        "events per read and per settlement",
        default=500,
        formerly={
            "notification.outbox.batch.size": "",
            "outbox.publisher.batch-size": "",
            "outbox.processor.batch-size": "",
            "batch_size": "",
        },
    )
    in_flight: int = key(Whole(1), "batches in hand at once", default=3)
    max_in_flight_bytes: str | int = key(
        Size(largest=None),
        "payload, headers and ids of everything in flight at once; an event that is larger is sent alone",
        default="64 MiB",
    )
    max_destinations: int = key(
        Whole(1),
        "without routes: how many destinations event types make; events of further types wait as having no route",
        default=1000,
    )
    poll_interval: str = key(
        Span(),
        "the longest pause between two looks",
        default="1s",
        formerly={
            "notification.outbox.poll.interval": "milliseconds there",
            "outbox.publisher.polling-interval": "",
            "outbox.processor.interval": "milliseconds there",
            "poll_interval": "",
        },
    )
    initial_delay: str = key(
        Span(),
        "before the first look",
        default="0s",
        formerly={"notification.outbox.initial.delay": "milliseconds there"},
    )
    lease: str = key(
        Span(),
        "how long others wait before they take over from a relay that no longer renews",
        default="15s",
        formerly={"outbox.processor.lock-stale-timeout-seconds": "seconds there; 15s is enough here"},
    )
    heartbeat: str = key(Span(), "how often the lease is renewed; three must fit into it", default="1s")
    send_timeout: str = key(
        Span(), "how long a send may take; 1 s and two heartbeats more fit into the lease", default="10s"
    )
    drain_timeout: str = key(Span(), "how long a stopping relay waits for what is in flight", default="30s")
    stall_limit: str = key(Span(), "an event loop silent for longer gives its lanes up", default="60s")
    adaptive: bool = key(
        Truth(),
        'look more often while there is work; `false` and `record.wakeup = "none"`: a fixed delay of poll_interval',
        default=True,
    )
    outages: Literal["wait", "count"] = key(
        Choice(("wait", "count")),
        "an outage of a destination is waited for, or counted against max_attempts",
        default="wait",
    )
    on_exhausted: Literal["skip", "block"] = key(
        Choice(("skip", "block")),
        "after the last attempt of an event: `skip` dead-letters it and sends the next event of its key; `block` holds "
        "the key until an operator decides",
        default="skip",
    )
    ledger: bool | Literal["history", "at-most-once"] = key(
        LedgerMode(),
        "what knows that an event was delivered, so that a repeat of its id is not sent: the history, for as long "
        "as it is kept, or a ledger written before every send (`true`); with `at-most-once` what a relay was sending "
        "when it died is dead-lettered instead of sent again",
        default="history",
    )
    recorded_after: str | None = key(
        Moment(),
        "carry only events recorded at this time or later; with `--until-empty` only",
        default=None,
    )
    recorded_before: str | None = key(
        Moment(), "carry only events recorded before this time; with `--until-empty` only", default=None
    )
    listen: str | None = key(Listen(), "where metrics and health are served; without it, nowhere", default=None)
    retry: RetrySettings = part(RetrySettings)
    breaker: BreakerSettings = part(BreakerSettings)
    health: HealthSettings = part(HealthSettings)
    config: RelayConfig = field(default_factory=RelayConfig)
    """The figures above, and those of other sections that a relay needs, for `Relay`."""
    policy: RetryPolicy = field(default_factory=ExponentialBackoff)

    @property
    def ledger_kind(self) -> LedgerKind:
        """What a store is told of it."""
        return True if self.ledger == "at-most-once" else self.ledger


def make_config(store: StoreSettings, record: RecordSettings, relay: RelaySettings) -> RelayConfig:
    """What a relay is told of three sections. Raises ConfigurationError."""
    return RelayConfig(
        enabled=relay.enabled,
        batch_size=relay.batch_size,
        in_flight=relay.in_flight,
        max_in_flight_bytes=relay.max_in_flight_bytes,
        max_destinations=relay.max_destinations,
        poll_interval=relay.poll_interval,
        initial_delay=relay.initial_delay,
        lease=relay.lease,
        heartbeat=relay.heartbeat,
        send_timeout=relay.send_timeout,
        drain_timeout=relay.drain_timeout,
        stall_limit=relay.stall_limit,
        adaptive=relay.adaptive,
        wakeup=record.wakeup,
        outages=relay.outages,
        at_most_once=relay.ledger == "at-most-once",
        on_exhausted=relay.on_exhausted,
        breaker=BreakerConfig(probe=relay.breaker.probe, max=relay.breaker.max, jitter=relay.breaker.jitter),
        history=store.history_for,
        dead=_unless_forever(store.dead_retention),
        receipts=_unless_forever(store.inbox_retention),
        ledger=_unless_forever(store.ledger_retention),
        audit=_unless_forever(store.audit_retention),
    )


def _unless_forever(kept: str) -> str | None:
    return None if kept == "forever" else kept
