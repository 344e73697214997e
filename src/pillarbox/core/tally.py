"""What a consumer met: how many events it handled, skipped, failed and gave up on.

Figures are for people who look: those of the last seconds of a consumer that died are missing, and what it could not be
sure to have written is written again.
"""

from __future__ import annotations

from typing import NamedTuple

LATELY = 86_400.0
"""Seconds of tallies that are shown, by the hour."""


class Tally(NamedTuple):
    """What a consumer met since it last said so."""

    consumer: str
    handled: int = 0
    """Events that had their effect."""
    repeated: int = 0
    """Events that had it before, and were skipped."""
    failed: int = 0
    """Failures that were charged to an event, which then comes again."""
    given_up: int = 0
    """Events that went to the dead letters."""
    last_error: str | None = None
    failed_ago: float | None = None
    """Seconds since an event last failed or was given up on."""
