"""The way to one broker: the connection in use, opened on demand and replaced by a new one when it is lost.

Whatever is asked of the broker is asked within a time; whoever does not answer by then loses the connection, so that a
late answer finds nobody who waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TypeVar

from pillarbox.core.clock import Duration, seconds
from pillarbox.core.errors import ConfigurationError, UnavailableError
from pillarbox.timeouts import ProgressTimeout
from pillarbox.transports.rabbitmq.connection import Connection
from pillarbox.transports.rabbitmq.endpoint import Endpoint
from pillarbox.transports.rabbitmq.topology import Declaration

T = TypeVar("T")


class ConnectionManager:
    """One connection at a time; `what` it belongs to is named once it is closed."""

    def __init__(
        self, endpoint: Endpoint, *, heartbeat: float, connect_timeout: float, answer_timeout: float, what: str
    ) -> None:
        self._endpoint = endpoint
        self._heartbeat = heartbeat
        self._connect_timeout = connect_timeout
        self._answer_timeout = answer_timeout
        self._what = what
        self._link: Connection | None = None
        self._opening = asyncio.Lock()
        self._closed = False

    async def ready(self, declarations: Sequence[Declaration]) -> Connection:
        """The connection, topology declared. Raises UnavailableError, ConfigurationError."""
        if (link := self._link) is not None and link.ready:
            return link
        async with self._opening:
            link = await self._connected()
            if not link.declared:
                await self.in_time(link, link.declare(declarations))
            return link

    async def declare(self, declarations: Sequence[Declaration]) -> None:
        """Declare all of it, whatever was declared before. Raises UnavailableError, ConfigurationError."""
        async with self._opening:
            link = await self._connected()
            await self.in_time(link, link.declare(declarations))

    async def in_time(self, link: Connection, work: Awaitable[T]) -> T:
        """Do it within the time for answers, or drop the connection. Raises UnavailableError."""
        try:
            async with asyncio.timeout(self._answer_timeout):
                return await work
        except TimeoutError:
            raise self._unanswered(link) from None

    async def while_it_moves(self, link: Connection, work: Awaitable[T]) -> T:
        """Do it for as long as bytes leave or messages are confirmed within each time for answers; else drop the
        connection. On a slow link, what is on its way must not be sent a second time. Raises UnavailableError."""
        try:
            async with ProgressTimeout(self._answer_timeout, lambda: link.progress):
                return await work
        except TimeoutError:
            raise self._unanswered(link) from None

    @property
    def progress(self) -> object:
        """Something else whenever bytes left or a message was confirmed."""
        return None if self._link is None else (id(self._link), self._link.progress)

    def _unanswered(self, link: Connection) -> UnavailableError:
        error = UnavailableError(f"RabbitMQ at {self._endpoint} did not answer within {self._answer_timeout:g} s")
        link.let_go(error)
        return error

    def check_open(self) -> None:
        """Raise UnavailableError once it is closed."""
        if self._closed:
            raise self._closed_error()

    async def aclose(self) -> None:
        """Say goodbye and close; whatever waits for an answer is told UnavailableError. Closing twice is fine."""
        self._closed = True
        if self._link is not None:
            await self._link.aclose(self._closed_error())

    async def _connected(self) -> Connection:
        self.check_open()
        link = self._link
        if link is None or link.lost is not None:
            if link is not None:
                await link.gone()
            self.check_open()
            link = self._link = Connection(self._endpoint, heartbeat=self._heartbeat)
            try:
                async with asyncio.timeout(self._connect_timeout):
                    await link.open()
            except TimeoutError:
                link.let_go(
                    UnavailableError(
                        f"no connection to RabbitMQ at {self._endpoint} within {self._connect_timeout:g} s"
                    )
                )
            except asyncio.CancelledError:
                link.let_go(UnavailableError("connecting was cancelled"))
                raise
        link.check()
        return link

    def _closed_error(self) -> UnavailableError:
        return UnavailableError(f"the {self._what} to RabbitMQ at {self._endpoint} is closed")


def at_least_one(field: str, number: int) -> int:
    """The number. Raises ConfigurationError for anything else."""
    if type(number) is not int or number < 1:
        raise ConfigurationError(f"{field} is {number!r}; a whole number from 1")
    return number


def positive(field: str, duration: Duration) -> float:
    """The duration in seconds. Raises ConfigurationError for none at all."""
    if (number := seconds(duration, field=field)) > 0:
        return number
    raise ConfigurationError(f"{field} is {duration!r}; it must be longer than nothing")
