"""What the application is told by its environment. The names are those of the relay, so that one pair serves both.

They are not flags, because the list of processes shows what stands on a command line.
"""

from __future__ import annotations

import os

from pillarbox import ConfigurationError

DATABASE = "PILLARBOX_STORE"
BROKER = "PILLARBOX_TRANSPORT"


def database_url() -> str:
    """Raises ConfigurationError if it is not set."""
    return _told(DATABASE, "postgresql://… or sqlite:///…")


def broker_url() -> str:
    """Raises ConfigurationError if it is not set."""
    return _told(BROKER, "amqp://…")


def _told(name: str, example: str) -> str:
    if not (value := os.environ.get(name)):
        raise ConfigurationError(f"{name} is not set; give it {example}")
    return value
