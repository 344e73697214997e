"""The one thing a transport's author writes: how to get at a fresh transport, and at what arrived behind it.

What arrived is read back with something that is not the transport, so that nobody testifies for himself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from pillarbox.core.transport import Address, Outgoing, Transport


class Arrived(NamedTuple):
    """A message as whoever stands behind the transport sees it."""

    event_id: str
    body: bytes
    headers: Mapping[str, str]
    """May have more than was sent: a transport adds its own."""
    content_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportCapabilities:
    """What a transport can do beyond the contract; the suite asks, and prints, these."""

    ordered: bool = True
    """A batch to one address arrives in the order it was sent; else only one send after another does."""
    routes: bool = False
    """It can tell that nobody takes a message: `unroutable`."""
    refuses: bool = False
    """Some messages it can never send: `spoiled`."""
    survives_restart: bool = False
    """What was accepted is still there after the server behind it started anew: `restart`."""
    outages: bool = False
    """The way can be cut: `cut` and `heal`."""


class TransportHarness(ABC):
    """A fresh transport for one test, and the far side of it.

    The fixture that makes one closes the transport; the suite may have closed it already.
    """

    capabilities: ClassVar[TransportCapabilities]
    secrets: Sequence[str] = ()
    """Texts that no error may show, such as the password in the address of the server."""

    @property
    @abstractmethod
    def transport(self) -> Transport:
        """The transport under test."""

    @abstractmethod
    def address(self, n: int = 0) -> Address:
        """A place that takes messages, empty at first; another one for each number from 0 to 9."""

    @abstractmethod
    async def received(self, address: Address) -> list[Arrived]:
        """All that arrived there since the test began, in the order of arrival."""

    def unroutable(self) -> Address:
        """A place where nobody takes a message, although the way there is open."""
        raise NotImplementedError("capabilities.routes promises it")

    def spoiled(self, good: Outgoing) -> Outgoing:
        """That message made one that can never be sent: too large, or impossible to encode."""
        raise NotImplementedError("capabilities.refuses promises it")

    async def restart(self) -> None:
        """Stop the server in good order and start it again; returns when it takes connections."""
        raise NotImplementedError("capabilities.survives_restart promises it")

    async def cut(self) -> None:
        """Break every connection and let none through, until `heal`."""
        raise NotImplementedError("capabilities.outages promises it")

    async def heal(self) -> None:
        """Let connections through again."""
        raise NotImplementedError("capabilities.outages promises it")
