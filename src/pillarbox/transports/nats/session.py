"""The messages in flight over one connection, and the pull consumers that they come from.

Messages are requested, so that a consumer receives no more than it has room for. One request of a consumer is under way
at a time. The server ends it with a status when it expires; if even that is lost, the request counts as ended a little
later, and the next one is sent. If the server ends it for another reason, as when the consumer moves to another server,
the next one is sent after a pause.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress

from pillarbox.core.clock import system_rng
from pillarbox.core.errors import UnavailableError
from pillarbox.core.retry import Backoff
from pillarbox.transports.nats.connection import NatsConnection
from pillarbox.transports.nats.driver import publish_command
from pillarbox.transports.nats.headers import DUE, ApiError, Copy, Kind, PulledMessage, copied, pulled, status_of
from pillarbox.transports.nats.topology import ConsumerNames

_EXPIRES = 5.0
"""Seconds that the server keeps a request, at most."""
_MARGIN = 2.0
"""Seconds after which a request that did not end counts as lost."""
_HEARTBEAT, _BAD_REQUEST, _EXPIRED, _ENDED, _NO_RESPONDERS = 100, 400, 408, 409, 503
_FINAL = ("Deleted", "MaxRequest", "push based")
"""Words of a status 409 with which the next request would end, too."""
_SECOND = 1_000_000_000
_WAIT_BATCH = 100
"""Retries that are checked at once."""
_LONGEST = 86_400.0
"""Seconds after which a retry with a longer delay is looked at again."""
_ACK, _NAK, _IN_PROGRESS = b"+ACK", b"-NAK", b"+WPI"


class PullConsumer:
    """A durable consumer over one connection. `on_message` receives its messages; `on_idle` is called when a request
    has ended, `on_failed` when the consumer cannot be used any more."""

    def __init__(
        self,
        connection: NatsConnection,
        stream: str,
        name: str,
        kind: Kind,
        *,
        expires: float,
        on_message: Callable[[PulledMessage], None],
        on_idle: Callable[[], None],
        on_failed: Callable[[UnavailableError], None],
    ) -> None:
        self._connection = connection
        self._kind: Kind = kind
        self._name = f"consumer {name!r} of stream {stream!r}"
        self._info = f"CONSUMER.INFO.{stream}.{name}"
        self._subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{name}"
        self._inbox = connection.new_inbox()
        self._requests = 0
        self._expires = expires
        self._timer: asyncio.TimerHandle | None = None
        self._pauses = Backoff(system_rng())
        self._on_message, self._on_idle, self._on_failed = on_message, on_idle, on_failed
        self.asked = 0
        """Messages that are requested and have not arrived."""
        self._subscription = connection.receive(f"{self._inbox}.*", self._on_received)

    def pull(self, count: int) -> None:
        """Request messages, unless a request is under way."""
        if count < 1 or self.asked or self._connection.lost is not None:
            return
        self._requests += 1
        self.asked = count
        payload = json.dumps({"batch": count, "expires": round(self._expires * _SECOND)}).encode()
        self._connection.wire.write(publish_command(self._subject, f"{self._inbox}.{self._requests}", payload))
        self._stop_timer()
        self._timer = asyncio.get_running_loop().call_later(self._expires + _MARGIN, self._ended)

    def stop(self) -> None:
        """Withdraw the request: the server delivers nothing to it that is released afterwards."""
        self._stop_timer()
        self._connection.ignore(self._subscription)

    async def forget_requests(self) -> None:
        """After `stop`, have the server drop the request. Raises UnavailableError.

        A server of NATS 2.9 that finds a withdrawn request when a message is released delivers another message twice
        and this one only after its ack wait. It looks through the requests when it is asked about the consumer.
        """
        with suppress(ApiError):
            await self._connection.request(self._info)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_received(self, subject: bytes, reply: bytes, body: bytes, block: bytes | None) -> None:
        status = status_of(block)
        if not status or reply.startswith(b"$JS.ACK."):
            if (message := pulled(self._kind, subject, reply, body, block)) is not None:
                self.asked = max(0, self.asked - 1)
                self._pauses.reset()
                self._on_message(message)
            return
        text = (block or b"").partition(b"\r\n")[0].decode("utf-8", "replace").removeprefix("NATS/1.0 ")
        if status in (_NO_RESPONDERS, _BAD_REQUEST) or (status == _ENDED and any(word in text for word in _FINAL)):
            self.asked = 0
            hint = "; raise this limit, or lower prefetch or ack_wait of the source" if "MaxRequest" in text else ""
            where = f"{self._name} at NATS {self._connection.server}"
            self._on_failed(UnavailableError(f"{where} sends no messages: {text}{hint}"))
        elif status == _HEARTBEAT or not subject.endswith(b".%d" % self._requests):
            return
        elif status == _EXPIRED:
            self._pauses.reset()
            self._ended()
        else:
            self._stop_timer()
            self._timer = asyncio.get_running_loop().call_later(self._pauses.next(), self._ended)

    def _ended(self) -> None:
        self.asked = 0
        self._stop_timer()
        self._on_idle()


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
        """Publish with retries until JetStream has stored it. Raises UnavailableError once the session has ended."""
        backoff = Backoff(system_rng())
        while True:
            self.check()
            try:
                status, answer = await self.connection.ask(subject, copy.body, copy.headers)
            except UnavailableError:
                self.check()
                status, answer = 0, b""
            if not status and b'"seq":' in answer and b'"error"' not in answer:
                return
            await asyncio.sleep(backoff.next())

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
