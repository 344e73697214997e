"""What the author of a transport writes: how to open a fresh transport, and how to read what arrived.

The harness reads what arrived without the transport, so that the transport does not test itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from pillarbox.core.transport import Address, Outgoing, Transport


class Arrived(NamedTuple):
    """A message as its receiver sees it."""

    event_id: str
    body: bytes
    headers: Mapping[str, str]
    """May contain more than was sent: a transport adds its own headers."""
    content_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportCapabilities:
    """What a transport supports beyond the contract; the suite reads and prints it."""

    ordered: bool = True
    """A batch to one address arrives in the order of the batch; otherwise only consecutive sends do."""
    routes: bool = False
    """It detects that a message has no receiver: `unroutable`."""
    refuses: bool = False
    """It can never send some messages: `spoiled`."""
    survives_restart: bool = False
    """Accepted messages survive a restart of the server: `restart`."""
    outages: bool = False
    """The connection can be cut: `cut` and `heal`."""
    deduplicates: bool = False
    """A message that is sent again with the same event id to the same address arrives once."""


class TransportHarness(ABC):
    """A fresh transport for one test, and its receiving side.

    The fixture closes the transport; the suite may have closed it already.
    """

    capabilities: ClassVar[TransportCapabilities]
    secrets: Sequence[str] = ()
    """Texts that no error may contain, such as the password in the URL of the server."""

    @property
    @abstractmethod
    def transport(self) -> Transport:
        """The transport under test."""

    @abstractmethod
    def address(self, n: int = 0) -> Address:
        """An address that accepts messages, empty at first; another one for each number from 0 to 9."""

    @abstractmethod
    async def received(self, address: Address) -> list[Arrived]:
        """Return all that arrived since the start of the test, in order of arrival."""

    def unroutable(self) -> Address:
        """An address without a receiver, although the connection works."""
        raise NotImplementedError("capabilities.routes promises it")

    def spoiled(self, good: Outgoing) -> Outgoing:
        """Change that message so that it can never be sent: too large, or impossible to encode."""
        raise NotImplementedError("capabilities.refuses promises it")

    async def restart(self) -> None:
        """Stop the server gracefully and start it again; return when it accepts connections."""
        raise NotImplementedError("capabilities.survives_restart promises it")

    async def cut(self) -> None:
        """Break every connection and allow none, until `heal`."""
        raise NotImplementedError("capabilities.outages promises it")

    async def heal(self) -> None:
        """Allow connections again."""
        raise NotImplementedError("capabilities.outages promises it")
