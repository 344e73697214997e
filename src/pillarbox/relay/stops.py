"""Lines that stopped: a message of theirs waits, and a look that began before that was written does not know it.

Between the decision that a message waits and the first look begun after its commit, later messages of the line come up
as if nothing stood before them. They are let go of, and met again by a look that knows.
"""

from __future__ import annotations

from collections import Counter

from pillarbox.core.message import Message
from pillarbox.relay.in_flight import QueueKey, queue_of


class Stops:
    """Looks are numbered as they begin. A line may have several decisions on their way into the store at once, and one
    round takes messages from several looks: a line is open again only once no decision is unwritten, and only for looks
    begun after the last one was written."""

    def __init__(self) -> None:
        self._unwritten: Counter[QueueKey] = Counter()
        self._known_after: dict[QueueKey, int] = {}
        self.looks = 0

    def stop(self, line: QueueKey) -> None:
        """From now on, and until its own `written`, no look knows."""
        self._unwritten[line] += 1

    def written(self, line: QueueKey) -> None:
        """A decision is committed, or void because its lane was lost: every look begun from now on knows."""
        self._unwritten[line] -= 1
        if self._unwritten[line] <= 0:
            del self._unwritten[line]
        self._known_after[line] = self.looks

    def let_go(self, line: QueueKey) -> None:
        """A message of the line went out of hand as it was: a look that is under way left it out."""
        self._known_after[line] = self.looks

    @property
    def quiet(self) -> bool:
        """Whether no queue is stopped: `hold_back` is False for every message."""
        return not self._unwritten and not self._known_after

    def begin_round(self) -> None:
        """No look is under way: whatever is written is known to all that come."""
        self._known_after.clear()

    def clear(self) -> None:
        """The relay ended: no decision of its is on the way any more."""
        self._unwritten.clear()
        self._known_after.clear()

    def hold_back(self, message: Message, destination: str, look: int) -> bool:
        """Whether a message that this look brought may stand behind something the look did not know of."""
        if message.key is None:
            return False
        own, whole_key = queue_of(message, destination), queue_of(message, "")
        return self._unknown_to(own, look) or self._unknown_to(whole_key, look)

    def _unknown_to(self, line: QueueKey, look: int) -> bool:
        return line in self._unwritten or look <= self._known_after.get(line, -1)
