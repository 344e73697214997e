"""The settings of the outbox publisher: the properties `outbox.publisher.*` as OUTBOX_PUBLISHER_… variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from apps.runtime.variables import Variables
from pillarbox import ExponentialBackoff, RelayConfig

PREFIX = "OUTBOX_PUBLISHER_"
HOUR = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Publisher:
    """Durations are seconds. `read` creates it from the environment."""

    enabled: bool = True
    """OUTBOX_PUBLISHER_ENABLED: false leaves every event PENDING."""
    polling_interval: float = 2.0
    """OUTBOX_PUBLISHER_POLLING_INTERVAL: the longest pause between two polls; a commit wakes the relay earlier."""
    batch_size: int = 50
    """OUTBOX_PUBLISHER_BATCH_SIZE: events per poll."""
    max_retries: int = 10
    """OUTBOX_PUBLISHER_MAX_RETRIES: retries after the first attempt, then the event is FAILED."""
    initial_retry_delay: float = 10.0
    """OUTBOX_PUBLISHER_INITIAL_RETRY_DELAY: before the first retry; it doubles with every further one."""
    max_retry_delay: float = HOUR
    """OUTBOX_PUBLISHER_MAX_RETRY_DELAY: the longest."""
    outages: Literal["wait", "count"] = "wait"
    """OUTBOX_PUBLISHER_OUTAGES: `wait` while the broker is unavailable, or `count` each attempt as a retry."""
    fixed_delay: bool = False
    """OUTBOX_PUBLISHER_FIXED_DELAY: true polls after exactly the polling interval, as a scheduler does."""

    @property
    def config(self) -> RelayConfig:
        return RelayConfig(
            enabled=self.enabled,
            poll_interval=self.polling_interval,
            batch_size=self.batch_size,
            outages=self.outages,
            adaptive=not self.fixed_delay,
            wakeup="none" if self.fixed_delay else "notify",
        )

    @property
    def retry(self) -> ExponentialBackoff:
        return ExponentialBackoff(
            base=self.initial_retry_delay,
            multiplier=2,
            max_delay=self.max_retry_delay,
            jitter="none",
            max_attempts=self.max_retries + 1,
        )

    @property
    def as_relay_settings(self) -> dict[str, str]:
        """The same as variables of `pillarbox relay`, for a separate relay."""
        return {
            "PILLARBOX_RELAY__ENABLED": str(self.enabled).lower(),
            "PILLARBOX_RELAY__POLL_INTERVAL": f"{self.polling_interval}s",
            "PILLARBOX_RELAY__BATCH_SIZE": str(self.batch_size),
            "PILLARBOX_RELAY__OUTAGES": self.outages,
            "PILLARBOX_RELAY__ADAPTIVE": str(not self.fixed_delay).lower(),
            "PILLARBOX_RELAY__WAKEUP": "none" if self.fixed_delay else "notify",
            "PILLARBOX_RELAY__RETRY__BASE": f"{self.initial_retry_delay}s",
            "PILLARBOX_RELAY__RETRY__MAX_DELAY": f"{self.max_retry_delay}s",
            "PILLARBOX_RELAY__RETRY__MAX_ATTEMPTS": str(self.max_retries + 1),
        }


def read(environment: Mapping[str, str], mistakes: list[str]) -> Publisher:
    """Read the settings from the environment; adds invalid values to `mistakes`."""
    given = Variables(environment, PREFIX)
    values: dict[str, Any] = {
        "enabled": given.flag("ENABLED"),
        "polling_interval": given.seconds("POLLING_INTERVAL"),
        "batch_size": given.whole("BATCH_SIZE", least=1, most=10_000),
        "max_retries": given.whole("MAX_RETRIES", least=0, most=10_000),
        "initial_retry_delay": given.seconds("INITIAL_RETRY_DELAY"),
        "max_retry_delay": given.seconds("MAX_RETRY_DELAY"),
        "outages": given.choice("OUTAGES", "wait", "count"),
        "fixed_delay": given.flag("FIXED_DELAY"),
    }
    mistakes += given.mistakes
    publisher = Publisher(**{name: value for name, value in values.items() if value is not None})
    if publisher.initial_retry_delay > publisher.max_retry_delay:
        first, longest = f"{publisher.initial_retry_delay:g} s", f"{publisher.max_retry_delay:g} s"
        mistakes.append(
            f"{PREFIX}INITIAL_RETRY_DELAY ({first}) is longer than {PREFIX}MAX_RETRY_DELAY ({longest}); "
            "lower the first or raise the second"
        )
    return publisher
