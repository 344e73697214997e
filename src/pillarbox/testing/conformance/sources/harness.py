"""What the author of a source writes: how to open fresh sources on one queue, and how to access both of its ends.

The harness publishes messages and reads dead letters without the source, so that the source does not test itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from pillarbox.core.source import Incoming, Source

PREFETCH = 3
"""Prefetch of the sources under test."""


class SourceDeadLetter(NamedTuple):
    """A dead letter as an operator finds it."""

    event_id: str | None
    body: bytes
    attempts: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCapabilities:
    """What a source supports beyond the contract; the suite reads and prints it."""

    survives_restart: bool = False
    """Delayed messages survive a restart of the server: `restart`."""
    outages: bool = False
    """The connection can be cut: `cut` and `heal`."""
    competing: bool = True
    """Consumers share the messages of a queue one by one; otherwise each receives those of its own partitions."""


class SourceHarness(ABC):
    """An empty queue for one test. The fixture closes the sources; the suite may have closed them already."""

    capabilities: ClassVar[SourceCapabilities]
    secrets: Sequence[str] = ()
    """Texts that no error may contain, such as the password in the URL of the server."""

    @property
    def destination(self) -> str:
        """The name that `put` publishes to, as deliveries state it; '': the messages of this source have none."""
        return ""

    @property
    @abstractmethod
    def source(self) -> Source:
        """The source under test, with a prefetch of `PREFETCH` and a wait of at most a tenth of a second."""

    @abstractmethod
    def another(self) -> Source:
        """Another source on the same queue."""

    @abstractmethod
    async def put(self, *messages: Incoming) -> None:
        """Publish messages to the queue, in this order."""

    @abstractmethod
    async def dead(self) -> list[SourceDeadLetter]:
        """Return all dead letters, in the order of their arrival."""

    async def restart(self) -> None:
        """Stop the server gracefully and start it again; return when it accepts connections."""
        raise NotImplementedError("capabilities.survives_restart promises it")

    async def cut(self) -> None:
        """Break every connection of `source` and allow none, until `heal`."""
        raise NotImplementedError("capabilities.outages promises it")

    async def heal(self) -> None:
        """Allow connections again."""
        raise NotImplementedError("capabilities.outages promises it")
