"""The states of an event for one destination, and how many events are in each.

    ready          a relay may fetch it now
    in_flight      a relay has had it in flight for longer than a second
    retrying       it waits for its next attempt
    delayed        it was recorded for a later time
    waiting        it waits for an earlier event of its key
    parked         its destination is unavailable, paused or rate-limited
    blocked        it blocks its key until an operator decides
    published      delivered
    dead_lettered  a dead letter

A status is coarser: PENDING, PROCESSING, PUBLISHED or FAILED, as the view `outbox_event` shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from pillarbox.core.message import Status
from pillarbox.core.statistics import COUNTED


class EventState(StrEnum):
    """The state of an event for one destination."""

    READY = "ready"
    IN_FLIGHT = "in_flight"
    RETRYING = "retrying"
    DELAYED = "delayed"
    WAITING = "waiting"
    PARKED = "parked"
    BLOCKED = "blocked"
    PUBLISHED = "published"
    DEAD_LETTERED = "dead_lettered"

    @property
    def status(self) -> Status:
        """The coarser status."""
        return _STATUS.get(self, Status.PENDING)

    @property
    def label(self) -> str:
        """The name that pages show: in flight, dead-lettered."""
        return _LABELS.get(self, self.value)


_STATUS = {
    EventState.IN_FLIGHT: Status.PROCESSING,
    EventState.BLOCKED: Status.FAILED,
    EventState.PUBLISHED: Status.PUBLISHED,
    EventState.DEAD_LETTERED: Status.FAILED,
}
_LABELS = {EventState.IN_FLIGHT: "in flight", EventState.DEAD_LETTERED: "dead-lettered"}

STORED = (
    EventState.READY,
    EventState.RETRYING,
    EventState.DELAYED,
    EventState.WAITING,
    EventState.PARKED,
    EventState.BLOCKED,
)
"""The states that the row of a pending message has; a message in flight has one of them, too."""
UNDELIVERED = (*STORED, EventState.IN_FLIGHT)

Accuracy = Literal["exact", "estimate", "at_least"]


@dataclass(frozen=True, slots=True)
class StateCount:
    """How many events are in a state."""

    count: int
    accuracy: Accuracy = "exact"
    """`at_least`: there are more than are counted, and the database has no estimate."""

    @property
    def text(self) -> str:
        """The count with its accuracy: `12`, `~2,000,000` or `10,000+`."""
        match self.accuracy:
            case "exact":
                return f"{self.count:,}"
            case "estimate":
                return f"~{self.count:,}"
            case "at_least":
                return f"{self.count:,}+"


StateCounts = Mapping[EventState, StateCount]


def up_to_limit(found: int, estimate: int | None = None) -> StateCount:
    """Return a count of which the database counted at most `COUNTED + 1`; beyond, its estimate if it has one."""
    if found <= COUNTED:
        return StateCount(found)
    return StateCount(COUNTED, "at_least") if estimate is None else StateCount(max(estimate, found), "estimate")


def combined(
    stored: Mapping[EventState, int],
    in_flight: Mapping[EventState, int],
    *,
    pending: int | None,
    retrying_complete: bool = True,
    published: StateCount,
    dead_letters: int,
) -> dict[EventState, StateCount]:
    """Combine bounded counts into the counts of all states, in the order of `EventState`.

    stored: messages by the state of their rows, at most `COUNTED + 1` each. in_flight: those of them that are in
    flight. pending: the estimated number of all pending messages; None without an estimate. retrying_complete: False if
    there may be more retries than were counted.
    """
    # A blocked message is never sent: a report that it is in flight is outdated.
    flying = {**in_flight, EventState.BLOCKED: 0}
    beyond = [state for state in STORED if stored[state] > COUNTED]
    rest = None
    if pending is not None and len(beyond) == 1:
        rest = pending - sum(count for state, count in stored.items() if state not in beyond)
    counts = {EventState.IN_FLIGHT: StateCount(sum(flying.values()))}
    for state in STORED:
        found = up_to_limit(stored[state], rest)
        counts[state] = found if state in beyond else StateCount(max(0, found.count - flying.get(state, 0)))
    if not retrying_complete and EventState.RETRYING not in beyond:
        counts[EventState.RETRYING] = StateCount(counts[EventState.RETRYING].count, "at_least")
    counts[EventState.PUBLISHED] = published
    counts[EventState.DEAD_LETTERED] = up_to_limit(dead_letters)
    return {state: counts[state] for state in EventState}
