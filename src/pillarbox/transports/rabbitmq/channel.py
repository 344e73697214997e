"""A channel with one thing to wait for at a time: an answer of the broker, or its own end.

However a wait ends, it ends: with the answer, with ChannelRefused when the broker closed the channel over something
said on it, with UnavailableError when the connection went or was blocked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from pillarbox.core.errors import UnavailableError
from pillarbox.transports.rabbitmq.driver import (
    ChannelClosedByBroker,
    ChannelWrongStateError,
    ConnectionWrongStateError,
    RawChannel,
    Wire,
    reason_of,
)
from pillarbox.transports.rabbitmq.endpoint import Endpoint


class ChannelRefused(Exception):
    """The broker closed a channel; it does not say over which message."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{text} ({code})")
        self.code = code


class Channel:
    """One channel of one connection."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._awaited: asyncio.Future[Any] | None = None
        self._raw: RawChannel | None = None
        self.failure: ChannelRefused | UnavailableError | None = None
        """Why it is of no more use; None while it is."""

    async def open(self, wire: Wire) -> None:
        """Raises UnavailableError."""
        try:
            self._raw = wire.channel(on_open_callback=self.answered)
        except ConnectionWrongStateError as error:
            raise self._lost(error) from error
        self._raw.add_on_close_callback(self._closed)
        await self.answer()

    @property
    def raw(self) -> RawChannel:
        """pika's channel. Raises what ended this one."""
        if self.failure is not None:
            raise self.failure
        if self._raw is None:
            raise UnavailableError(f"a channel to {self._endpoint} was used before it was open")
        return self._raw

    async def call(self, method: Callable[..., object], **arguments: Any) -> Any:
        """One question and its answer. Raises ChannelRefused, UnavailableError."""
        method(**arguments, callback=self.answered)
        return await self.answer()

    def answer(self) -> asyncio.Future[Any]:
        """What `answered` is called with, to be awaited. Raises what ended the channel, before or meanwhile."""
        if self.failure is not None:
            raise self.failure
        self._awaited = asyncio.get_running_loop().create_future()
        return self._awaited

    def answered(self, answer: object = None) -> None:
        if self._awaited is not None and not self._awaited.done():
            self._awaited.set_result(answer)

    def ack(self, tag: int) -> None:
        """Have the broker forget a message that came over this channel. Raises UnavailableError if it has ended."""
        try:
            self.raw.basic_ack(tag)
        except (ChannelRefused, ChannelWrongStateError, ConnectionWrongStateError) as error:
            raise UnavailableError(f"the message can no longer be acked: {error}; it comes again") from error

    def fail(self, error: ChannelRefused | UnavailableError) -> None:
        """End it for this reason, unless it has ended already; whoever waits hears of it."""
        if self.failure is None:
            self.failure = error
            if self._awaited is not None and not self._awaited.done():
                self._awaited.set_exception(error)

    def close(self) -> None:
        """Tell the broker that it is done; the answer is not waited for."""
        self.fail(UnavailableError(f"a channel to {self._endpoint} was closed"))
        if self._raw is not None and (self._raw.is_open or self._raw.is_opening):
            self._raw.close()

    def _closed(self, _: RawChannel, reason: Exception) -> None:
        if isinstance(reason, ChannelClosedByBroker):
            self.fail(ChannelRefused(reason.reply_code, reason.reply_text))
        else:
            self.fail(self._lost(reason))

    def _lost(self, reason: Exception) -> UnavailableError:
        return UnavailableError(f"lost the connection to RabbitMQ at {self._endpoint}: {reason_of(reason)}")
