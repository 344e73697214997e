"""A lot on its way: what is to be published, and the answers as they come in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pillarbox.core.errors import SendError, Unavailable
from pillarbox.core.transport import Outgoing, Result


class Parcel(NamedTuple):
    """One message with its place in the lot and its address written out."""

    place: int
    outgoing: Outgoing
    exchange: str
    routing_key: str

    @property
    def event_id(self) -> str:
        return self.outgoing.message.event_id


_NEVER = Unavailable("the message was never answered; it is sent again")


class Answers:
    """One result per message of a lot. The first answer stands."""

    def __init__(self, size: int) -> None:
        # Whatever is forgotten must not pass for accepted.
        self._results: list[Result] = [_NEVER] * size
        self._known = bytearray(size)
        self._unknown = size

    def answer(self, place: int, result: Result) -> None:
        if not self._known[place]:
            self._results[place] = result
            self._known[place] = True
            self._unknown -= 1

    def accept(self, parcels: Sequence[Parcel]) -> None:
        """Answer all of them that have no answer yet: accepted."""
        if len(parcels) == self._unknown == len(self._results):
            self._results = [None] * self._unknown
            self._known = bytearray(b"\x01" * self._unknown)
            self._unknown = 0
            return
        for parcel in parcels:
            self.answer(parcel.place, None)

    def without(self, parcels: Iterable[Parcel]) -> list[Parcel]:
        """Those that have no answer yet."""
        return [parcel for parcel in parcels if not self._known[parcel.place]] if self._unknown else []

    def close(self, parcels: Iterable[Parcel], error: SendError) -> None:
        """Give all that have no answer this one."""
        for parcel in parcels:
            self.answer(parcel.place, error)

    def results(self) -> list[Result]:
        return self._results
