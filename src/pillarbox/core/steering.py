"""What people set for a destination: pause, forced breaker, rate limit."""

from __future__ import annotations

import math
from enum import Enum
from typing import Final, Literal, NamedTuple

from pillarbox.core.errors import ConfigurationError

EVERYWHERE = "*"
"""In place of a destination: what is set there holds for all."""

Forced = Literal["open", "closed"]
"""A breaker that a person holds in one state, whatever happens."""


class Keep(Enum):
    """What is not to be changed."""

    KEEP = "keep"


KEEP: Final = Keep.KEEP
"""Leave it as it is; None clears it."""


class Steering(NamedTuple):
    """What people set for a destination, and what it last said."""

    destination: str
    """A destination, or `EVERYWHERE`."""
    paused: bool
    breaker: Forced | None
    rate_limit: float | None
    """Messages per second, of all relays together."""
    last_error: str | None


def changes(
    *, paused: bool | Keep, breaker: Forced | Keep | None, rate_limit: float | Keep | None
) -> dict[str, bool | str | float | None]:
    """Of what `Destinations.steer` was given, that which is to change. Raises ConfigurationError."""
    if breaker not in (KEEP, None, "open", "closed"):
        raise ConfigurationError(f"a breaker cannot be {breaker!r}: force it 'open' or 'closed', or clear it with None")
    if not (rate_limit is None or isinstance(rate_limit, Keep) or (rate_limit > 0 and math.isfinite(rate_limit))):
        raise ConfigurationError(f"a rate limit of {rate_limit} lets nothing through: pause it, or clear it with None")
    given = {"paused": paused, "breaker": breaker, "rate_limit": rate_limit}
    return {name: value for name, value in given.items() if not isinstance(value, Keep)}
