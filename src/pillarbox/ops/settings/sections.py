"""The sections [store] and [relay]. Settings that the library defines are taken over from there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Literal

from pillarbox import plugins, schemes
from pillarbox.core.clock import Duration, seconds
from pillarbox.core.retry import RetryPolicy
from pillarbox.core.store import LedgerKind
from pillarbox.ops.settings.kinds import Listen, Moment, Url
from pillarbox.ops.settings.tables import inlined, same_as
from pillarbox.relay.config import PRESETS, RelayConfig
from pillarbox.retry_policies import ExponentialBackoff, FixedDelay, MaxAttempts, NoRetry
from pillarbox.settings import Choice, Pairs, Span, Text, Whole, part, setting
from pillarbox.table_names import TableNames

_STORES = Url("store", schemes.STORES, "postgresql://…, mariadb://…, sqlite:///file.db or memory://")
_MOST_SUMMED = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """Where events are stored."""

    url: str = setting(
        "sqlite:///pillarbox.db",
        _STORES,
        "The database: `postgresql://…`, `mariadb://…`, `sqlite:///file.db` or `memory://`. Not set: `DATABASE_URL`. "
        "The certificate of a server on another machine is verified unless the URL says otherwise.",
        secret=True,
        formerly={"pool": ""},
    )
    name: str = setting(
        "",
        Text(),
        "The name of this outbox: the label `outbox` of its metrics. Not set: the name of the database or file, with "
        "the schema and the prefix if they are not the usual ones.",
    )
    schema: str = same_as(TableNames, "schema")
    prefix: str = same_as(TableNames, "prefix")
    history: bool = same_as(plugins.StoreOptions, "history")
    ledger: LedgerKind = same_as(plugins.StoreOptions, "ledger")
    statement_timeout: Duration = same_as(plugins.StoreOptions, "statement_timeout")
    options: Mapping[str, Any] | None = setting(
        None, Pairs(texts=False), "Options of a store that another distribution registers."
    )
    max_payload: int = plugins.StoreOptions.max_payload
    """Bytes, from [record]: the tables have the same limit."""

    @property
    def tables(self) -> TableNames:
        return TableNames(prefix=self.prefix, schema=self.schema)

    @property
    def outbox_name(self) -> str:
        """What distinguishes this outbox from others in metrics."""
        usual = TableNames()
        place = self.url.partition("://")[2].partition("?")[0].rstrip("/")
        database = PurePath(place.rpartition("/")[2]).stem or schemes.scheme_of(self.url)
        special = [given for given in (self.schema, self.prefix) if given not in (usual.schema, usual.prefix)]
        return self.name or ".".join([database, *special])


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrySettings:
    """When an event that was rejected is sent again."""

    policy: Literal["exponential", "fixed", "none"] = setting(
        "exponential",
        Choice(("exponential", "fixed", "none")),
        "`exponential`: `ExponentialBackoff` of `base`, `multiplier`, `max_delay` and `jitter`. `fixed`: `FixedDelay` "
        "of `delay`. `none`: `NoRetry`, one send.",
    )
    base: str = same_as(ExponentialBackoff, "base", only_for=("exponential",))
    multiplier: float = same_as(ExponentialBackoff, "multiplier", only_for=("exponential",))
    max_delay: str = same_as(ExponentialBackoff, "max_delay", only_for=("exponential",))
    jitter: Literal["none", "full", "additive"] = same_as(ExponentialBackoff, "jitter", only_for=("exponential",))
    delay: str = same_as(FixedDelay, "delay", only_for=("fixed",))
    max_attempts: MaxAttempts = same_as(ExponentialBackoff, "max_attempts", only_for=("exponential", "fixed"))

    def __post_init__(self) -> None:
        self.make_policy()

    def make_policy(self) -> RetryPolicy:
        """Raises ConfigurationError."""
        match self.policy:
            case "none":
                return NoRetry()
            case "fixed":
                return FixedDelay(delay=self.delay, max_attempts=self.max_attempts)
            case "exponential":
                return ExponentialBackoff(
                    base=self.base,
                    multiplier=self.multiplier,
                    max_delay=self.max_delay,
                    jitter=self.jitter,
                    max_attempts=self.max_attempts,
                )

    def horizon(self) -> float:
        """Seconds from the first send to the last, at the longest."""
        sends, policy = (1 if self.policy == "none" else self.max_attempts), self.make_policy()
        if sends == "unlimited":
            return float("inf")
        delays = [policy.delay_after(attempt, _LongestDelay()) or 0.0 for attempt in range(1, min(sends, _MOST_SUMMED))]
        return sum(delays) + max(0, sends - _MOST_SUMMED) * (delays[-1] if delays else 0.0)


class _LongestDelay:
    """RandomSource that makes every delay as long as it can be."""

    def random(self) -> float:
        return 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthSettings:
    """When `/health` of a relay says DOWN."""

    max_backlog: int | Literal["unlimited"] = setting(
        10_000,
        Whole("events", zero="as soon as an event is pending", words=("unlimited",)),
        "DOWN when more events than this are pending.",
    )
    max_age: str = setting(
        "5m",
        Span(("forever",), zero="as soon as an event is pending"),
        "DOWN when the oldest pending event is older than this.",
    )

    @property
    def backlog_limit(self) -> int | None:
        """Pending events; None: unlimited."""
        return None if self.max_backlog == "unlimited" else self.max_backlog

    @property
    def age_limit(self) -> float | None:
        """Seconds; None: unlimited."""
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
        "Values that belong together, see [presets](#presets); a key that is set takes precedence.",
    )
    config: RelayConfig = inlined(RelayConfig)
    recorded_after: str | None = setting(
        None, Moment(), "Send only events recorded at this time or later. With `--until-empty` only."
    )
    recorded_before: str | None = setting(
        None, Moment(), "Send only events recorded before this time. With `--until-empty` only."
    )
    listen: str | None = setting(
        None, Listen(), "Where metrics and health are served. Port 0: any free one. Not set: nowhere."
    )
    retry: RetrySettings = part(RetrySettings)
    health: HealthSettings = part(HealthSettings)

    @property
    def policy(self) -> RetryPolicy:
        """The retry policy."""
        return self.retry.make_policy()
