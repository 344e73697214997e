"""The messages in flight over one connection, from several pull consumers."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress

from pillarbox.core.clock import system_rng
from pillarbox.core.errors import UnavailableError
from pillarbox.core.retry import Backoff
from pillarbox.transports.nats.connection import NO_RESPONDERS, NatsConnection
from pillarbox.transports.nats.driver import publish_command
from pillarbox.transports.nats.headers import DUE, Copy, Kind, PulledMessage, copied
from pillarbox.transports.nats.pull_consumer import PullConsumer
from pillarbox.transports.nats.topology import ConsumerNames

_EXPIRES = 5.0
"""Seconds that the server keeps a request, at most."""
_SECOND = 1_000_000_000
_WAIT_BATCH = 100
"""Retries that are checked at once."""
_LONGEST = 86_400.0
"""Seconds after which a retry with a longer delay is looked at again."""
_MAX_SILENCE = 5.0
"""Seconds without an answer to a copy after which its stream counts as gone."""
_ACK, _NAK, _IN_PROGRESS = b"+ACK", b"-NAK", b"+WPI"


class NatsConsumerSession:
    """The messages in flight over one connection. When it ends, they are `abandoned`."""

    def __init__(
        self, connection: NatsConnection, names: ConsumerNames, group: str, *, prefetch: int, ack_wait: float
    ) -> None:
        self.connection, self.names = connection, names
        self._prefetch = prefetch
        self.max_payload = connection.max_payload
        self.failure: UnavailableError | None = None
        self.abandoned: list[str] = []
        """Where the messages can be released that were in flight when the connection was lost."""
        self._received: dict[bool, deque[PulledMessage]] = {False: deque(), True: deque()}
        """Not returned yet: in quarantine or not."""
        self._returned: set[PulledMessage] = set()
        self._waiting: asyncio.Future[None] | None = None
        self._moves: set[asyncio.Task[None]] = set()
        self._period = ack_wait / 3
        # A server of NATS 2.9 miscounts deliveries if it finds the request of a crashed consumer when an ack wait ends.
        self._expires = min(_EXPIRES, ack_wait / 2)
        self._timer = asyncio.get_running_loop().call_later(self._period, self._keep_alive)
        self._consumers = {
            "work": self._consumer(names.stream, group, "work"),
            "ready": self._consumer(names.retry_stream, "ready", "ready"),
            "quarantine": self._consumer(names.retry_stream, "quarantine", "quarantine"),
        }
        self._wait = PullConsumer(
            connection,
            names.retry_stream,
            "wait",
            "wait",
            expires=self._expires,
            on_message=self._on_retry,
            on_idle=self._pull,
            on_failed=self._on_failed,
        )
        connection.listeners.add(self)
        if connection.lost is not None:
            self.on_lost(connection.lost)
        self._pull()

    async def next(self) -> PulledMessage:
        """The next message. Raises UnavailableError once the session has ended."""
        while True:
            self.check()
            room = sum(not one.quarantined for one in self._returned) < self._prefetch
            for received in (self._received[True], self._received[False]) if room else (self._received[True],):
                if received:
                    self._returned.add(message := received.popleft())
                    return message
            self._waiting = asyncio.get_running_loop().create_future()
            try:
                await self._waiting
            finally:
                self._waiting = None

    def check(self) -> None:
        """Raise UnavailableError once the session has ended."""
        if self.failure is not None:
            raise UnavailableError(f"{self.failure}; the message is delivered again") from self.failure

    def put_back(self, message: PulledMessage) -> None:
        """Return it by `next` again."""
        if message in self._returned:
            self._returned.discard(message)
            self._received[message.quarantined].appendleft(message)

    def settle(self, message: PulledMessage) -> None:
        """Ack a message. Raises UnavailableError once the session has ended."""
        self._settle(message, _ACK)

    def send_back(self, message: PulledMessage, delay: float) -> None:
        """Have JetStream deliver a message again after a delay. Raises UnavailableError once the session has ended."""
        self._settle(message, _nak(delay))

    def _settle(self, message: PulledMessage, acknowledgement: bytes) -> None:
        self.check()
        self.respond(message.reply, acknowledgement)
        self._returned.discard(message)
        self._wake()
        self._pull()

    def respond(self, reply: str, acknowledgement: bytes) -> None:
        """Write an acknowledgement."""
        self.connection.wire.write(publish_command(reply, "", acknowledgement))

    def release(self, replies: list[str]) -> None:
        """Have messages delivered again at once that were in flight over a lost connection."""
        for reply in replies:
            self.respond(reply, _NAK)

    async def store(self, subject: str, copy: Copy) -> None:
        """Publish with retries until JetStream has stored it. Raises UnavailableError once the session has ended.

        If nothing answers for longer than an election takes, the session ends, and the next one declares what is
        missing.
        """
        backoff, clock = Backoff(system_rng()), asyncio.get_running_loop().time
        answered = clock()
        while True:
            try:
                if await self.store_at_once(subject, copy):
                    return
                answered = clock()
            except UnavailableError as error:
                if clock() - answered > _MAX_SILENCE:
                    self._on_failed(error)
                self.check()
            await asyncio.sleep(backoff.next())

    async def store_at_once(self, subject: str, copy: Copy) -> bool:
        """Publish once; returns whether JetStream has stored it. Raises UnavailableError if nothing answers, and once
        the session has ended."""
        self.check()
        status, answer = await self.connection.ask(subject, copy.body, copy.headers)
        if status == NO_RESPONDERS:
            where = f"NATS at {self.connection.server}"
            raise UnavailableError(f"no stream of {where} has subject {subject!r}, or that stream has no leader")
        return not status and b'"seq":' in answer and b'"error"' not in answer

    async def aclose(self) -> None:
        """Release the messages in flight, and stop."""
        self.on_lost(UnavailableError("the source is closed"))
        if self.connection.lost is None:
            with suppress(UnavailableError):
                for consumer in self._consumers.values():
                    await consumer.forget_requests()
                self.release(self.abandoned)
            self.abandoned = []
        moves = list(self._moves)
        for move in moves:
            move.cancel()
        await asyncio.gather(*moves, return_exceptions=True)

    def on_lost(self, reason: UnavailableError) -> None:
        """End the session."""
        if self.failure is None:
            self.failure = reason
            self.abandoned = self._in_flight()
            self._timer.cancel()
            for consumer in (*self._consumers.values(), self._wait):
                consumer.stop()
            self.connection.listeners.discard(self)
            self._wake()

    def on_refused(self, text: str) -> None:
        """The server denies something to this user: nothing works until an operator changes that."""
        self._on_failed(UnavailableError(f"NATS at {self.connection.server} refuses: {text}; grant the permission"))

    def _on_failed(self, reason: UnavailableError) -> None:
        self.on_lost(reason)
        self.connection.abort(reason)

    def _consumer(self, stream: str, name: str, kind: Kind) -> PullConsumer:
        def on_message(message: PulledMessage) -> None:
            if self.failure is None:
                self._received[kind == "quarantine"].append(message)
                self._wake()
            else:
                self.abandoned.append(message.reply)

        return PullConsumer(
            self.connection,
            stream,
            name,
            kind,
            expires=self._expires,
            on_message=on_message,
            on_idle=self._pull,
            on_failed=self._on_failed,
        )

    def _pull(self) -> None:
        """Request as many messages as there is room for; of due retries, as many again."""
        if self.failure is not None:
            return
        quarantined = sum(one.quarantined for one in self._returned)
        room = self._prefetch - (len(self._returned) - quarantined) - len(self._received[False])
        self._consumers["work"].pull(room)
        self._consumers["ready"].pull(room)
        self._consumers["quarantine"].pull(1 - quarantined - len(self._received[True]))
        self._wait.pull(_WAIT_BATCH - len(self._moves))

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def _in_flight(self) -> list[str]:
        return [one.reply for one in (*self._returned, *self._received[True], *self._received[False])]

    def _keep_alive(self) -> None:
        """Extend the ack wait of all messages in flight."""
        if self.failure is None:
            for reply in self._in_flight():
                self.respond(reply, _IN_PROGRESS)
            self._timer = asyncio.get_running_loop().call_later(self._period, self._keep_alive)

    def _on_retry(self, message: PulledMessage) -> None:
        """Send a retry back that is not due, and move one that is."""
        if self.failure is not None:
            return
        headers = message.sent_headers()
        left = _due(headers) - time.time()
        if left > 0:
            self.respond(message.reply, _nak(left))
        else:
            move = asyncio.create_task(self._move_due(message, headers))
            self._moves.add(move)
            move.add_done_callback(self._moved)
        if not self._wait.asked:
            self._pull()

    def _moved(self, move: asyncio.Task[None]) -> None:
        self._moves.discard(move)
        self._pull()

    async def _move_due(self, message: PulledMessage, headers: Mapping[str, str]) -> None:
        copy = copied(message, headers, {DUE: None}, self.max_payload)
        try:
            await self.store(self.names.subject("ready"), copy)
            self.respond(message.reply, _ACK)
        except UnavailableError:
            return  # JetStream delivers the retry again


def _nak(delay: float) -> bytes:
    return b'%b {"delay": %d}' % (_NAK, round(min(delay, _LONGEST) * _SECOND)) if delay > 0 else _NAK


def _due(headers: Mapping[str, str]) -> float:
    try:
        return float(headers.get(DUE, "0"))
    except ValueError:
        return 0.0
