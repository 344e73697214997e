"""What the environment says. Library code reads no environment; this file is the only one that does.

Every name that begins with PILLARBOX_ must be known here: a misspelt setting is an error, never a silent default.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from pillarbox.core.duration import seconds
from pillarbox.core.errors import ConfigurationError
from pillarbox.core.retry import Exponential
from pillarbox.relay.tuning import Tuning

DEFAULT_STORE = "sqlite:///pillarbox.db"

STORE = "PILLARBOX_STORE"
TRANSPORT = "PILLARBOX_TRANSPORT"
FAILPOINT = "PILLARBOX_FAILPOINT"
RELAY = "PILLARBOX_RELAY__"
RETRY = "PILLARBOX_RELAY__RETRY__"

_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def _text(_variable: str, value: str) -> str:
    return value


def _whole(variable: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise ConfigurationError(f"{variable} is {value!r}: write a whole number") from None


def _number(variable: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise ConfigurationError(f"{variable} is {value!r}: write a number") from None


def _duration(variable: str, value: str) -> str:
    seconds(value, field=variable)
    return value


def _truth(variable: str, value: str) -> bool:
    if (word := value.strip().lower()) in _TRUE + _FALSE:
        return word in _TRUE
    raise ConfigurationError(f"{variable} is {value!r}: write true or false")


Reader = Callable[[str, str], Any]

_TUNING: Mapping[str, Reader] = {
    "batch_size": _whole,
    "in_flight": _whole,
    "poll_interval": _duration,
    "lease": _duration,
    "heartbeat": _duration,
    "send_timeout": _duration,
    "drain_timeout": _duration,
    "stall_limit": _duration,
}
_RELAY: Mapping[str, Reader] = {"name": _text, "enabled": _truth}
_RETRY: Mapping[str, Reader] = {
    "base": _duration,
    "max": _duration,
    "multiplier": _number,
    "jitter": _text,
    "max_attempts": _whole,
}
_VARIABLES = [
    STORE,
    TRANSPORT,
    FAILPOINT,
    *(f"{RELAY}{key.upper()}" for key in (*_TUNING, *_RELAY)),
    *(f"{RETRY}{key.upper()}" for key in _RETRY),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings that the commands of this release need."""

    store: str = DEFAULT_STORE
    """URL of the store: postgresql://…, sqlite:///file.db or memory://."""
    transport: str = ""
    """The way out: amqp://…, console:// or handlers:MODULE:OBJECT; '' where none was named."""
    failpoint: str = ""
    """`name:count`: where a relay under test is to die; '' never."""
    enabled: bool = True
    name: str = ""
    """A label for this relay; its id is random."""
    tuning: Tuning = field(default_factory=Tuning)
    retry: Exponential = field(default_factory=Exponential)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """What is set, and defaults for the rest; empty counts as not set. Raises ConfigurationError, naming the
        variable."""
        given = {name: value for name, value in environment.items() if name.startswith("PILLARBOX_") and value}
        _refuse_unknown(given)
        try:
            return cls(
                store=given.get(STORE, DEFAULT_STORE),
                transport=given.get(TRANSPORT, ""),
                failpoint=given.get(FAILPOINT, ""),
                tuning=Tuning(**_read(given, RELAY, _TUNING)),
                retry=Exponential(**_read(given, RETRY, _RETRY)),
                **_read(given, RELAY, _RELAY),
            )
        except ConfigurationError as error:
            raise ConfigurationError(_by_variable(str(error))) from None


def _refuse_unknown(given: Mapping[str, str]) -> None:
    for name in sorted(given):
        if name not in _VARIABLES:
            near = get_close_matches(name, _VARIABLES, n=1, cutoff=0.0)[0]
            raise ConfigurationError(f"{name} is no setting; did you mean {near}?")


def _read(given: Mapping[str, str], prefix: str, readers: Mapping[str, Reader]) -> dict[str, Any]:
    found = {key: f"{prefix}{key.upper()}" for key in readers}
    return {key: readers[key](name, given[name]) for key, name in found.items() if name in given}


def _by_variable(message: str) -> str:
    """The names of settings as whoever set them knows them."""
    message = re.sub(r"\brelay\.([a-z_]+)", lambda found: f"{RELAY}{found[1].upper()}", message)
    return re.sub(r"\bretry\.([a-z_]+)", lambda found: f"{RETRY}{found[1].upper()}", message)
