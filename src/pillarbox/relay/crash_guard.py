"""A message that kills its relay is found out.

A lane that was taken again and again from owners that did not leave holds a message that ends its relay. The messages
of such a lane go one at a time, and the attempt is written before the send. Whoever comes next sees, on a message that
is ready and yet was tried, whom to suspect; after three such attempts it is given up on.

Only a process that ended during the send counts. A relay that lost its lane, its database or its destination lives: it
does not count its own attempt twice, it says so as soon as it can where another relay has the lane, and nobody is given
up on before the relays that may live had the time to say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pillarbox.core.clock import Clock
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

    def __init__(self, *, window: int, grace: float, clock: Clock) -> None:
        """grace: seconds after a lane was taken within which a relay that lives has said so."""
        self._window = window
        self._grace = grace
        self._clock = clock
        self._careful: dict[int, int] = {}
        self._taken_at: dict[int, float] = {}
        self._charged: dict[tuple[str, str], int] = {}
        """Messages whose attempt this relay wrote and did not settle since, with their lanes."""

    def took(self, leases: list[Lease]) -> None:
        """Lanes came in; those with a history are worked with care for as many messages as were in hand at most."""
        for lease in leases:
            self._taken_at[lease.lane] = self._clock.monotonic()
            if lease.crashes >= SUSPICIOUS:
                self._careful[lease.lane] = self._window

    def suspects(self, message: Message) -> bool:
        """Whether to write the attempt before the send."""
        return message.lane in self._careful or _tried_and_still_ready(message)

    @property
    def quiet(self) -> bool:
        """Whether no lane is worked with care, and no attempt of this relay is written and not settled."""
        return not self._careful and not self._charged

    def passed(self, messages: Iterable[Message]) -> None:
        """These messages were settled, and the relay lives."""
        if self.quiet:
            return
        for message in messages:
            self._charged.pop(message.identity, None)
            if message.lane in self._careful:
                self._careful[message.lane] -= 1
                if self._careful[message.lane] <= 0:
                    del self._careful[message.lane]

    def enough(self, message: Message) -> bool:
        """Whether it ended its relay often enough to be given up on."""
        return _tried_and_still_ready(message) and message.attempts - self.charged(message) >= ENOUGH

    def convicted(self, message: Message) -> Dead | None:
        """The verdict on such a message; None while a relay that counts as ended may still say that it lives."""
        if self._clock.monotonic() - self._taken_at.get(message.lane, 0.0) < self._grace:
            return None
        return Dead(error=f"its relay ended {message.attempts} times while this was being sent", charge=False)

    def charged(self, message: Message) -> bool:
        """Whether one of its attempts is this relay's own, which it outlived."""
        return message.attempts > 0 and message.identity in self._charged

    def charge(self, message: Message) -> None:
        """Its attempt is about to be written, and may be although the answer is lost."""
        self._charged[message.identity] = message.lane

    def outlived(self, owns: Callable[[int], bool]) -> list[tuple[str, str]]:
        """Messages whose attempt counts in lanes that are not ours any more, although this relay lives."""
        return [identity for identity, lane in self._charged.items() if not owns(lane)]

    def cleared(self, identities: Sequence[tuple[str, str]]) -> None:
        """Their attempts were not written after all, or are taken back."""
        for identity in identities:
            self._charged.pop(identity, None)


def _tried_and_still_ready(message: Message) -> bool:
    """Only an attempt written before its send leaves a message like this."""
    return message.attempts > 0 and message.held is None and message.available_at is None
