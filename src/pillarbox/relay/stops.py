"""Lines that stopped: a message of theirs waits, and a look that began before that was written does not know it.

Between the decision that a message waits and the first look begun after its commit, later messages of the line come up
as if nothing stood before them. They are let go of, and met again by a look that knows.
"""

from __future__ import annotations

from pillarbox.core.message import Message
from pillarbox.relay.hand import LineKey, line_of


class Stops:
    """Looks are numbered as they begin."""

    def __init__(self) -> None:
        self._known_after: dict[LineKey, int | None] = {}
        self.looks = 0

    def stop(self, line: LineKey) -> None:
        """From now on, and until `written`, no look knows."""
        self._known_after[line] = None

    def written(self, line: LineKey) -> None:
        """It is committed: every look begun from now on knows."""
        if line in self._known_after:
            self._known_after[line] = self.looks

    def let_go(self, line: LineKey) -> None:
        """A message of the line went out of hand as it was: a look that is under way left it out."""
        self.stop(line)
        self.written(line)

    def begin_round(self) -> None:
        """No look is under way: whatever is written is known to all that come."""
        if self._known_after:
            self._known_after = {line: known for line, known in self._known_after.items() if known is None}

    def hold_back(self, message: Message, destination: str, look: int) -> bool:
        """Whether a message that this look brought may stand behind something the look did not know of."""
        if message.key is None:
            return False
        own, whole_key = line_of(message, destination), line_of(message, "")
        return self._unknown_to(own, look) or self._unknown_to(whole_key, look)

    def _unknown_to(self, line: LineKey, look: int) -> bool:
        if line not in self._known_after:
            return False
        known_after = self._known_after[line]
        if known_after is None or look <= known_after:
            return True
        del self._known_after[line]
        return False
