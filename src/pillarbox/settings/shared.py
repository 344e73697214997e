"""Settings that several classes of the library have: producers, relay, store, transports."""

from __future__ import annotations

from typing import Any, Final, Literal, get_args

from pillarbox.core.clock import Duration
from pillarbox.core.errors import ConfigurationError
from pillarbox.core.payload import Size
from pillarbox.settings.definitions import setting
from pillarbox.settings.kinds import ByteSize, Choice, Flag, Span, Text, Whole

WakeupMode = Literal["notify", "none"]

DEFAULT_MAX_PAYLOAD: Final[Size] = "1 MiB"
"""The default of `max_payload`."""
SEND_TIMEOUT: Final[Duration] = "10s"
"""The default of `send_timeout`: a relay passes its own to the transport that it opens."""


def max_payload_setting() -> Any:
    """The field `max_payload`."""
    return setting(DEFAULT_MAX_PAYLOAD, ByteSize("64 MiB"), "The largest payload of an event.")


def wakeup_setting(help: str) -> Any:
    """The field `wakeup`: of producers and of the relay."""
    return setting("notify", Choice.of(WakeupMode), help)


def window_setting() -> Any:
    """The field `window` of a transport."""
    return setting(1000, Whole("messages"), "Messages sent and not yet confirmed, at most.")


def declare_setting() -> Any:
    """The field `declare` of a transport."""
    return setting(
        True, Flag(), "Declare what events are sent to (exchanges and queues, topics, streams) on every new connection."
    )


def connect_timeout_setting() -> Any:
    """The field `connect_timeout` of a transport."""
    return setting("10s", Span(), "How long connecting may take.")


def ca_file_setting() -> Any:
    """The field `ca_file` of a transport."""
    return setting(
        "", Text(), "A file with certificates of trusted authorities, for TLS. Empty: those of the system are trusted."
    )


PresetName = Literal["development", "staging", "production", "high-volume"]
PRESET_NAMES: tuple[PresetName, ...] = get_args(PresetName)


def check_preset(name: PresetName) -> PresetName:
    """The name. Raises ConfigurationError for a preset that does not exist."""
    if name not in PRESET_NAMES:
        raise ConfigurationError(f"there is no preset {name!r}; use {', '.join(PRESET_NAMES)}")
    return name
