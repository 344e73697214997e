"""What becomes of a message after its handling: a pure decision, chance injected."""

from __future__ import annotations

from dataclasses import dataclass

from pillarbox.core.clock import Chance
from pillarbox.core.errors import PermanentError, PillarboxError, UnavailableError, primary_text
from pillarbox.core.outcome import legible
from pillarbox.core.retry import ExponentialBackoff, RetryPolicy
from pillarbox.core.source import Incoming
from pillarbox.inbox.effects import NotBegun

LONGEST_REASON = 1000
"""Characters of an exception's first line that are kept with a message."""

OUTAGE = ExponentialBackoff(base="1s", multiplier=5, max="30s", jitter="none", max_attempts=0)
"""When a message comes again that failed through no fault of its own: for as long as that lasts, and at most so much
later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """It had its effect, now or before."""

    first: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """It had no effect, and comes again after `after` seconds."""

    after: float
    error: str
    charge: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenUp:
    """It is for the dead letters."""

    error: str


Outcome = Ended | Again | GivenUp


def judge(error: BaseException, incoming: Incoming, policy: RetryPolicy, chance: Chance) -> Again | GivenUp:
    """What becomes of a message whose handling raised this."""
    text = told(error)
    if isinstance(error, PermanentError):
        return GivenUp(error=text)
    if isinstance(error, (NotBegun, UnavailableError)):
        return Again(after=OUTAGE.delay(incoming.tries + 1, chance) or 0.0, error=text, charge=False)
    try:
        after = policy.delay(incoming.attempts + 1, chance)
    except Exception as broken:
        return GivenUp(error=f"{text}; the retry policy raised {told(broken)}")
    return GivenUp(error=text) if after is None else Again(after=after, error=text, charge=True)


def told(error: BaseException) -> str:
    """The first line of what it says, with its kind where that is not one of ours."""
    try:
        text = primary_text(error).strip()
    except Exception:  # an exception that cannot even say what it is
        text = ""
    first = legible(text.splitlines()[0][:LONGEST_REASON]) if text else ""
    if isinstance(error, PillarboxError) and first:
        return first
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
