"""The sections [store] and [relay]. Settings that the library defines are taken over from there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pillarbox import plugins
from pillarbox.core.clock import seconds
from pillarbox.core.retry import ExponentialBackoff, FixedDelay, NoRetry, RetryPolicy
from pillarbox.core.store import LedgerKind
from pillarbox.ops.settings.kinds import Listen, Moment, Url
from pillarbox.ops.settings.tables import inlined, same_as
from pillarbox.relay.config import PRESETS, RelayConfig
from pillarbox.settings import Choice, Pairs, Span, Text, Whole, part, setting
from pillarbox.table_names import TableNames

_STORES = Url("store", plugins.STORES, "postgresql://…, sqlite:///file.db or memory://")
_MOST_SUMMED = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """Where events are stored."""

    url: str = setting(
        "sqlite:///pillarbox.db",
        _STORES,
        "The database: `postgresql://…`, `sqlite:///file.db` or `memory://`. A PostgreSQL on another machine is "
        "reached with `sslmode=verify-full` unless the URL says otherwise.",
        secret=True,
        formerly={"pool": ""},
    )
    schema: str = same_as(TableNames, "schema")
    prefix: str = same_as(TableNames, "prefix")
    history: bool = same_as(plugins.StoreOptions, "history")
    ledger: LedgerKind = same_as(plugins.StoreOptions, "ledger")
    options: Mapping[str, Any] | None = setting(
        None, Pairs(texts=False), "Options of a store that another distribution registers."
    )
    max_payload: int = plugins.StoreOptions.max_payload
    """Bytes, from [record]: the tables have the same limit."""

    @property
    def tables(self) -> TableNames:
        return TableNames(prefix=self.prefix, schema=self.schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrySettings:
    """When an event that was rejected is sent again."""

    policy: Literal["exponential", "fixed", "none"] = setting(
        "exponential",
        Choice(("exponential", "fixed", "none")),
        "`exponential`: `ExponentialBackoff` of `base`, `multiplier`, `max` and `jitter`. `fixed`: `FixedDelay` of "
        "`wait`. `none`: `NoRetry`, one send.",
    )
    base: str = same_as(ExponentialBackoff, "base", only_for=("exponential",))
    multiplier: float = same_as(ExponentialBackoff, "multiplier", only_for=("exponential",))
    max: str = same_as(ExponentialBackoff, "max", only_for=("exponential",))
    jitter: Literal["none", "full", "additive"] = same_as(ExponentialBackoff, "jitter", only_for=("exponential",))
    wait: str = same_as(FixedDelay, "wait", only_for=("fixed",))
    max_attempts: int = same_as(ExponentialBackoff, "max_attempts", only_for=("exponential", "fixed"))

    def __post_init__(self) -> None:
        self.make_policy()

    def make_policy(self) -> RetryPolicy:
        """Raises ConfigurationError."""
        match self.policy:
            case "none":
                return NoRetry()
            case "fixed":
                return FixedDelay(wait=self.wait, max_attempts=self.max_attempts)
            case "exponential":
                return ExponentialBackoff(
                    base=self.base,
                    multiplier=self.multiplier,
                    max=self.max,
                    jitter=self.jitter,
                    max_attempts=self.max_attempts,
                )

    def horizon(self) -> float:
        """Seconds from the first send to the last, at the longest."""
        sends, policy = (1 if self.policy == "none" else self.max_attempts), self.make_policy()
        if sends == 0:
            return float("inf")
        delays = [policy.delay(attempt, _LongestDelay()) or 0.0 for attempt in range(1, min(sends, _MOST_SUMMED))]
        return sum(delays) + max(0, sends - _MOST_SUMMED) * (delays[-1] if delays else 0.0)


class _LongestDelay:
    """Chance that makes every delay as long as it can be."""

    def random(self) -> float:
        return 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthSettings:
    """When `/health` of a relay says DOWN."""

    max_backlog: int = setting(10_000, Whole("events", zero="any number"), "More pending events than this.")
    max_age: str = setting(
        "5m", Span(("forever",), zero="any pending event"), "The oldest pending event is older than this."
    )

    @property
    def most_waiting(self) -> int | None:
        """None: any number."""
        return self.max_backlog or None

    @property
    def longest_wait(self) -> float | None:
        """Seconds; None: any age."""
        return None if self.max_age == "forever" else seconds(self.max_age)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelaySettings:
    """How a relay works."""

    name: str = setting(
        "",
        Text(),
        "A label in output and logs. The id of a relay is random.",
        formerly={"outbox.processor.worker-id": "a label only: nothing depends on it"},
    )
    preset: str = setting(
        "none",
        Choice(("none", *PRESETS)),
        "Values that belong together; a key that is set wins. `high-volume` logs single events from WARNING on.",
    )
    config: RelayConfig = inlined(RelayConfig, without=("wakeup",))
    """With `record.wakeup`."""
    recorded_after: str | None = setting(
        None, Moment(), "Send only events recorded at this time or later. With `--until-empty` only."
    )
    recorded_before: str | None = setting(
        None, Moment(), "Send only events recorded before this time. With `--until-empty` only."
    )
    listen: str | None = setting(None, Listen(), "Where metrics and health are served. Not set: nowhere.")
    retry: RetrySettings = part(RetrySettings)
    health: HealthSettings = part(HealthSettings)

    @property
    def policy(self) -> RetryPolicy:
        """The retry policy."""
        return self.retry.make_policy()
