"""Which messages of a window are confirmed: acks and nacks come single, multiple and out of order.

Pure: delivery tags in, answers out. A window is published with consecutive tags from `first`; a tag outside it belongs
to another window and changes nothing.
"""

from __future__ import annotations

_OPEN, _ACKED, _NACKED = 0, 1, 2
_STATES = (b"\x00", b"\x01", b"\x02")


class Confirms:
    """The answers to one window."""

    __slots__ = ("_first", "_low", "_states", "open")

    def __init__(self, first: int, size: int) -> None:
        self._first = first
        self._states = bytearray(size)
        self._low = 0
        """Everything below was answered by a multiple: no later one looks at it again."""
        self.open = size
        """How many are unanswered."""

    def resolve(self, tag: int, *, multiple: bool, accepted: bool) -> None:
        """Take one ack or nack; `multiple` answers everything unanswered up to the tag, tag 0 everything."""
        states = self._states
        position = tag - self._first
        state = _ACKED if accepted else _NACKED
        if multiple:
            size = len(states)
            low, end = self._low, size if tag == 0 else min(position + 1, size)
            if low < end:
                self.open -= states.count(_OPEN, low, end)
                states[low:end] = states[low:end].replace(_STATES[_OPEN], _STATES[state])
                self._low = end
        elif 0 <= position < len(states) and states[position] == _OPEN:
            states[position] = state
            self.open -= 1

    @property
    def all_accepted(self) -> bool:
        """Whether the broker acked every message of the window."""
        return self._states.count(_ACKED) == len(self._states)

    def accepted(self, position: int) -> bool | None:
        """Whether the message at this position of the window was accepted; None: no answer yet."""
        state = self._states[position]
        return None if state == _OPEN else state == _ACKED
