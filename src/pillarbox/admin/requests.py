"""Operator requests: what an operator asks relays to do with pending messages, destinations and relays.

A pending message belongs to the owner of its lane. An operator therefore asks, and the owner carries the request out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from enum import Enum
from typing import Final, Literal, NamedTuple, Protocol

from pillarbox.core.errors import ConfigurationError
from pillarbox.core.store import ForcedBreakerState

Action = Literal["retry", "discard", "reschedule", "dead_letter"]
"""Send it now, delete it, send it later, or dead-letter it so that its key continues."""


class OpenRequest(NamedTuple):
    """A request that no relay has carried out yet."""

    action: Action
    destination: str
    delay: float
    requested_by: str
    requested_at: datetime


class Keep(Enum):
    """The type of `KEEP`."""

    KEEP = "keep"


KEEP: Final = Keep.KEEP
"""Leave this part of an override as it is; None clears it."""


class Requests(Protocol):
    """Asks relays for something; the audit tells what came of it."""

    async def add(
        self,
        action: Action,
        events: Sequence[tuple[str, str]],
        *,
        delay: float = 0,
        by: str = "",
        bulk_action: int | None = None,
    ) -> list[int]:
        """Ask the owners of their lanes to do something with pending messages, each an event id and a destination.

        Returns the ids of the requests, in the same order. `bulk_action` is the number of a bulk action's audit entry.
        """
        ...

    async def drain(self, relay: str, *, by: str = "") -> list[str]:
        """Ask a relay, by its id or its name, or `EVERY_RELAY`, to drain; returns the ids of the relays asked."""
        ...

    async def override(
        self,
        destination: str,
        *,
        paused: bool | Keep = KEEP,
        breaker: ForcedBreakerState | Keep | None = KEEP,
        rate_limit: float | Keep | None = KEEP,
        by: str = "",
    ) -> None:
        """Override the state of a destination, or of `EVERYWHERE`, and enter that in the audit.

        Raises ConfigurationError for a state that no breaker has and for a rate limit that is not above zero.
        """
        ...


def changes(
    *, paused: bool | Keep, breaker: ForcedBreakerState | Keep | None, rate_limit: float | Keep | None
) -> dict[str, bool | str | float | None]:
    """Return the parts of an override that are to change. Raises ConfigurationError."""
    if breaker not in (KEEP, None, "open", "closed"):
        raise ConfigurationError(f"a breaker cannot be {breaker!r}: force it 'open' or 'closed', or clear it with None")
    if not (rate_limit is None or isinstance(rate_limit, Keep) or (rate_limit > 0 and math.isfinite(rate_limit))):
        raise ConfigurationError(f"a rate limit of {rate_limit} lets nothing through: pause it, or clear it with None")
    given = {"paused": paused, "breaker": breaker, "rate_limit": rate_limit}
    return {name: value for name, value in given.items() if not isinstance(value, Keep)}
