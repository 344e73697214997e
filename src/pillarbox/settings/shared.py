"""Settings that more than one class of the library has: the producers' and the relay's, or the producers' and the
store's."""

from __future__ import annotations

from typing import Any, Final, Literal

from pillarbox.core.clock import Duration
from pillarbox.core.text import Size
from pillarbox.settings.definitions import setting
from pillarbox.settings.kinds import ByteSize, Choice

Wakeup = Literal["notify", "none"]

MAX_PAYLOAD: Final[Size] = "1 MiB"
"""The default of `max_payload`."""
SEND_TIMEOUT: Final[Duration] = "10s"
"""The default of `send_timeout`: a relay passes its own to the transport that it opens."""


def max_payload_setting() -> Any:
    """The field `max_payload`."""
    return setting(MAX_PAYLOAD, ByteSize("64 MiB"), "The largest payload of an event.")


def wakeup_setting() -> Any:
    """The field `wakeup`."""
    return setting(
        "notify",
        Choice.of(Wakeup),
        "`notify`: a commit wakes the sleeping relay. `none`: the relay only polls, as two-phase commit requires.",
    )
