"""The one thing a source's author writes: how to get at fresh sources on one queue, and at both ends of that.

What is put in and what ends with the dead letters is seen with something that is not the source, so that nobody
testifies for himself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from pillarbox.core.source import Incoming, Source

PREFETCH = 3
"""What the sources under test are made with."""


class Letter(NamedTuple):
    """A dead letter as a person finds it."""

    event_id: str | None
    body: bytes
    attempts: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCapabilities:
    """What a source can do beyond the contract; the suite asks, and prints, these."""

    survives_restart: bool = False
    """What waits is still there after the server behind it started anew: `restart`."""
    outages: bool = False
    """The way can be cut: `cut` and `heal`."""


class SourceHarness(ABC):
    """An empty queue for one test. The fixture that makes one closes the sources; the suite may have closed them."""

    capabilities: ClassVar[SourceCapabilities]
    secrets: Sequence[str] = ()
    """Texts that no error may show, such as the password in the address of the server."""

    @property
    @abstractmethod
    def source(self) -> Source:
        """The source under test, with a prefetch of `PREFETCH` and a wait of at most a tenth of a second."""

    @abstractmethod
    def another(self) -> Source:
        """One more on the same queue."""

    @abstractmethod
    async def put(self, *messages: Incoming) -> None:
        """Put messages into the queue, in this order."""

    @abstractmethod
    async def dead(self) -> list[Letter]:
        """All that is with the dead letters, in the order in which it came there."""

    async def restart(self) -> None:
        """Stop the server in good order and start it again; returns when it takes connections."""
        raise NotImplementedError("capabilities.survives_restart promises it")

    async def cut(self) -> None:
        """Break every connection of `source` and let none through, until `heal`."""
        raise NotImplementedError("capabilities.outages promises it")

    async def heal(self) -> None:
        """Let connections through again."""
        raise NotImplementedError("capabilities.outages promises it")
