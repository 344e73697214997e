"""Which messages of a window are confirmed: acks and nacks come single, multiple and out of order.

Pure: delivery tags in, answers out. A window is published with consecutive tags from `first`; a tag outside it belongs
to nobody here and changes nothing.
"""

from __future__ import annotations

_OPEN, _ACKED, _NACKED = 0, 1, 2


class Confirms:
    """The answers to one window."""

    __slots__ = ("_first", "_low", "_states", "open")

    def __init__(self, first: int, size: int) -> None:
        self._first = first
        self._states = bytearray(size)
        self._low = 0
        self.open = size
        """How many are unanswered."""

    def resolve(self, tag: int, *, multiple: bool, accepted: bool) -> None:
        """Take one ack or nack; `multiple` answers everything unanswered up to the tag, tag 0 everything."""
        size = len(self._states)
        place = size - 1 if multiple and tag == 0 else tag - self._first
        state = _ACKED if accepted else _NACKED
        if multiple:
            for earlier in range(self._low, min(place + 1, size)):
                self._answer(earlier, state)
            self._low = max(self._low, min(place + 1, size))
        elif 0 <= place < size:
            self._answer(place, state)

    def accepted(self, place: int) -> bool | None:
        """Whether the message at this place of the window was accepted; None: no answer yet."""
        state = self._states[place]
        return None if state == _OPEN else state == _ACKED

    def _answer(self, place: int, state: int) -> None:
        if self._states[place] == _OPEN:
            self._states[place] = state
            self.open -= 1
