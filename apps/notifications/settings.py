"""The settings of the application, read from the environment and validated before anything starts.

All processes read PILLARBOX_STORE and PILLARBOX_TRANSPORT, like the relay. They are not command line options, because
the list of processes shows those.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from apps.runtime.variables import RABBITMQ, Variables, rabbitmq_url
from pillarbox import ConfigurationError

DATABASE = "PILLARBOX_STORE"
BROKER = "PILLARBOX_TRANSPORT"
METRICS = "NOTIFICATIONS_METRICS"
"""host:port of /metrics and /health of a process without an API; `off`: none."""
PRODUCER = "NOTIFICATION_OUTBOX_"


def database_url() -> str:
    """Raises ConfigurationError if it is not set."""
    if not (value := os.environ.get(DATABASE)):
        raise ConfigurationError(f"{DATABASE} is not set; give it postgresql://…, mariadb://… or sqlite:///…")
    return value


def broker_url() -> str:
    """Raises ConfigurationError if it is not set."""
    if not (value := optional_broker_url()):
        raise ConfigurationError(
            f"{BROKER} is not set; give it amqp://… or the URL of another broker, or set {RABBITMQ}HOST"
        )
    return value


def optional_broker_url() -> str:
    """'' without a broker. Raises ConfigurationError for invalid or contradictory variables."""
    mistakes: list[str] = []
    named, url = rabbitmq_url(os.environ, mistakes), os.environ.get(BROKER, "")
    if named and url:
        mistakes.append(f"{BROKER} and {RABBITMQ}HOST are both set; keep one")
    _refuse(mistakes)
    return url or named


@dataclass(frozen=True, slots=True, kw_only=True)
class Producer:
    """How the relay of layer 1 polls: the properties `notification.outbox.*`, in seconds."""

    poll_interval: float | None = None
    """NOTIFICATION_OUTBOX_POLL_INTERVAL: the longest pause between two polls."""
    batch_size: int | None = None
    """NOTIFICATION_OUTBOX_BATCH_SIZE: events per poll."""
    initial_delay: float | None = None
    """NOTIFICATION_OUTBOX_INITIAL_DELAY: before the first poll."""

    @property
    def as_relay_settings(self) -> dict[str, str]:
        """As variables of `pillarbox relay`; `pillarbox.toml` applies to those that are not set."""
        given = {
            "PILLARBOX_RELAY__POLL_INTERVAL": _duration(self.poll_interval),
            "PILLARBOX_RELAY__BATCH_SIZE": None if self.batch_size is None else str(self.batch_size),
            "PILLARBOX_RELAY__INITIAL_DELAY": _duration(self.initial_delay),
        }
        return {name: value for name, value in given.items() if value is not None}


def _duration(seconds: float | None) -> str | None:
    return None if seconds is None else f"{seconds}s"


def producer(environment: Mapping[str, str]) -> Producer:
    """Raises a ConfigurationError that names every invalid variable."""
    given = Variables(environment, PRODUCER)
    found = Producer(
        poll_interval=given.seconds("POLL_INTERVAL"),
        batch_size=given.whole("BATCH_SIZE", least=1, most=10_000),
        initial_delay=given.seconds("INITIAL_DELAY", zero=True),
    )
    _refuse(given.mistakes)
    return found


def _refuse(mistakes: list[str]) -> None:
    if mistakes:
        raise ConfigurationError("; ".join(mistakes))
