"""Transports that only resolve addresses, for tests of routing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pillarbox.core.transport import Address, Outgoing, Pace, SendResult


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueAddress(Address):
    queue: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerAddress(Address):
    handler: str


class _NothingIsSent:
    pace = Pace()

    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        raise NotImplementedError

    async def ping(self) -> None:
        raise NotImplementedError

    async def aclose(self) -> None:
        raise NotImplementedError


class Queues(_NothingIsSent):
    """Every event type has a queue of its name."""

    address_type: type[Address] = QueueAddress

    def __init__(self) -> None:
        self.asked: list[str] = []

    def defaults(self, event_type: str) -> Mapping[str, Address]:
        self.asked.append(event_type)
        return {event_type: QueueAddress(queue=event_type)}


class Registry(_NothingIsSent):
    """An event type has its registered handlers."""

    address_type: type[Address] = HandlerAddress

    def __init__(self, **handlers: str) -> None:
        self.handlers = handlers

    def defaults(self, event_type: str) -> Mapping[str, Address]:
        return {name: HandlerAddress(handler=name) for name, wanted in self.handlers.items() if wanted == event_type}
