"""A message that kills its relay is found out.

A lane that was taken again and again from owners that did not leave holds a message that ends its relay. The messages
of such a lane go one at a time, and the attempt is written before the send. Whoever comes next sees, on a message that
is ready and yet was tried, whom to suspect; after three such attempts it is given up on.
"""

from __future__ import annotations

from pillarbox.core.lane import Lease
from pillarbox.core.message import Message
from pillarbox.core.outcome import Dead

SUSPICIOUS = 2
"""Crashes in a row, without a settlement in between, after which a lane is worked with care."""
ENOUGH = 3
"""Attempts that ended their relay, after which a message is given up on."""
NOTE = "being sent; if this stays, its relay ended meanwhile"


class Suspicion:
    """Which lanes and messages to be careful with."""

    def __init__(self, *, window: int) -> None:
        self._window = window
        self._careful: dict[int, int] = {}

    def took(self, leases: list[Lease]) -> None:
        """Lanes came in; those with a history are worked with care for as many messages as were in hand at most."""
        for lease in leases:
            if lease.crashes >= SUSPICIOUS:
                self._careful[lease.lane] = self._window

    def suspects(self, message: Message) -> bool:
        """Whether to write the attempt before the send."""
        return message.lane in self._careful or _tried_and_still_ready(message)

    def passed(self, message: Message) -> None:
        """A message of the lane was settled, and the relay lives."""
        if message.lane in self._careful:
            self._careful[message.lane] -= 1
            if self._careful[message.lane] <= 0:
                del self._careful[message.lane]

    def convicted(self, message: Message) -> Dead | None:
        """The verdict on a message that ended its relay often enough."""
        if _tried_and_still_ready(message) and message.attempts >= ENOUGH:
            return Dead(error=f"its relay ended {message.attempts} times while this was being sent", charge=False)
        return None


def _tried_and_still_ready(message: Message) -> bool:
    """Only an attempt written before its send leaves a message like this."""
    return message.attempts > 0 and message.held is None and message.available_at is None
