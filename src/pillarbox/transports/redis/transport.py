"""Redis Streams as a transport: one XADD per message, all of a batch in one write, one reply per message.

A send goes over one connection, and Redis executes the commands of a connection in their order. If the connection is
lost, the messages without a reply may be stored or not: their result is UnavailableError, and nothing sends them again
here. The next `send` opens a new connection.

Several sends at once go over several connections: Redis reads 16 KiB of a connection at a time, and with `appendfsync
always` it waits for the disk once for what it has read of all connections.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pillarbox import failpoints
from pillarbox.core.clock import Duration
from pillarbox.core.errors import NackedError, PermanentError, RejectedError, SendError, UnavailableError
from pillarbox.core.transport import Address, Outgoing, Pace, SendResult
from pillarbox.settings.shared import SEND_TIMEOUT
from pillarbox.settings.tls import Tls
from pillarbox.transports.redis.connection import ErrorReply, RedisConnection, RedisConnector, pack
from pillarbox.transports.redis.plugin import RedisAddress, RedisEndpoint, RedisOptions
from pillarbox.transports.redis.properties import fields_of
from pillarbox.transports.redis.server_clock import ServerClock

BATCH = 500
"""Messages in one batch."""
BATCH_BYTES = 1024 * 1024
"""Bytes in one batch: on a slow link, stored messages are settled before the rest has left."""
DEFAULT_MAX_BULK = 512 * 1024 * 1024
"""`proto-max-bulk-len` unless configured: the bytes of one field."""
_PROTOCOL_ERROR = "Protocol error"
_NOT_MASTER = frozenset({"READONLY", "MASTERDOWN", "NOREPLICAS"})
"""Refusals of a server that another one may have replaced: connect again, because the name may lead to that one. So it
is with a master that reaches too few replicas (`wait_replicas`)."""
_OF_STREAM = frozenset({"WRONGTYPE", "NOPERM", "MOVED", "ASK", "CLUSTERDOWN"})
"""Refusals that concern a stream; a server may accept entries for others."""
_TOO_LARGE = ("Elements are too large", "string exceeds maximum allowed size")

_Encoded = list[tuple[int, str, bytes]]
"""Position in the batch, stream, packed command."""


class RedisTransport:
    """A server. Makes no connection until something is sent or pinged.

    `url` is `redis[s]://user:password@host:port/database`; with `wait_replicas` a batch is accepted once that many
    replicas have received it. Raises ConfigurationError.
    """

    address_type: type[Address] = RedisAddress
    to = RedisAddress
    """`RedisTransport.to(stream="orders", max_length=100_000)`: a stream on a server."""

    def __init__(
        self,
        url: str,
        *,
        connect_timeout: Duration = RedisOptions.connect_timeout,
        connections: int = RedisOptions.connections,
        wait_replicas: int = RedisOptions.wait_replicas,
        send_timeout: Duration = SEND_TIMEOUT,
        tls: Tls = None,
    ) -> None:
        RedisOptions(connect_timeout=connect_timeout, connections=connections, wait_replicas=wait_replicas)  # checks
        self._endpoint = RedisEndpoint.parse(url, tls)
        self._wait_replicas = wait_replicas
        self._max_bulk = DEFAULT_MAX_BULK
        self._server_clock = ServerClock()
        self._connectors = [
            RedisConnector(
                self._endpoint,
                connect_timeout=connect_timeout,
                reply_timeout=send_timeout,
                what="transport",
                prepare=self._prepare,
            )
            for _ in range(connections)
        ]
        self._sends = [0] * connections
        """Sends in progress over each of them."""
        self._wait_ms = max(1, round(self._connectors[0].reply_timeout * 500))
        self._pace = Pace(
            batch_size=BATCH,
            concurrency=connections,
            in_order=True,
            bytes=BATCH_BYTES,
            progress=lambda: [connector.progress for connector in self._connectors],
        )

    def __repr__(self) -> str:
        return f"<RedisTransport at {self._endpoint}>"

    @property
    def pace(self) -> Pace:
        return self._pace

    def defaults(self, event_type: str) -> Mapping[str, Address]:
        """The stream named after the type, which Redis creates with its first entry."""
        return {event_type: RedisAddress()}

    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        """Write one XADD per message at once and wait for the replies. Raises UnavailableError once closed."""
        self._connectors[0].check_open()
        # The first of those with the fewest sends: a transport that sends one batch at a time uses one connection.
        number = self._sends.index(min(self._sends))
        self._sends[number] += 1
        try:
            return await self._send(self._connectors[number], batch)
        finally:
            self._sends[number] -= 1

    async def ping(self) -> None:
        """Connect and wait for a reply. Raises UnavailableError, also if the server accepts no writes."""
        connection = await self._connectors[0].ready()
        try:
            await connection.call("PING")
        except ErrorReply as refusal:
            raise UnavailableError(f"Redis at {self._endpoint} is not ready: {refusal}") from refusal
        if connection.server.get("role") == "replica":
            # It may have become the master since, and a failed master a replica.
            role = await self._role(connection)
            if role == "slave":
                replica = UnavailableError(
                    f"Redis at {self._endpoint} is a replica, which stores no events; use the address of the master"
                )
                connection.abort(replica)
                raise replica

    async def delete_stream(self, name: str) -> None:
        """Delete a stream with its entries; succeeds also if there is none. Raises UnavailableError."""
        connection = await self._connectors[0].ready()
        try:
            await connection.call("UNLINK", name)
        except ErrorReply as refusal:
            raise UnavailableError(f"stream {name!r} at {self._endpoint} cannot be deleted: {refusal}") from refusal

    async def aclose(self) -> None:
        """Close the connections; messages in flight fail with UnavailableError. Closing twice is fine."""
        for connector in self._connectors:
            await connector.aclose()

    async def _send(self, connector: RedisConnector, batch: Sequence[Outgoing]) -> list[SendResult]:
        results: list[SendResult] = [None] * len(batch)
        try:
            connection = await connector.ready()
            if self._server_clock.is_stale:
                await self._read_time(connection)
        except UnavailableError as error:
            return [error] * len(batch)
        left = self._encode(batch, results)
        while left:
            left = await self._add(connector, left, batch, results)
        return results

    async def _prepare(self, connection: RedisConnection) -> None:
        await self._read_limits(connection)
        await self._read_time(connection)

    async def _read_limits(self, connection: RedisConnection) -> None:
        """Managed services forbid CONFIG: then the default limit is assumed."""
        try:
            found = await connection.call("CONFIG", "GET", "proto-max-bulk-len")
            self._max_bulk = int(found[1])
        except (ErrorReply, IndexError, ValueError):
            self._max_bulk = DEFAULT_MAX_BULK

    async def _read_time(self, connection: RedisConnection) -> None:
        """If TIME is forbidden, only addresses with `max_age` are unavailable."""
        try:
            whole, micro = await connection.call("TIME")
            self._server_clock.tell(int(whole), int(micro))
        except (ErrorReply, TypeError, ValueError) as error:
            self._server_clock.refuse(str(error))

    async def _role(self, connection: RedisConnection) -> str:
        try:
            role = await connection.call("ROLE")
        except ErrorReply:  # forbidden
            return "slave"
        return bytes(role[0]).decode()

    def _encode(self, batch: Sequence[Outgoing], results: list[SendResult]) -> _Encoded:
        """The commands; sets the results of messages that cannot be sent."""
        encoded: _Encoded = []
        commands: dict[tuple[RedisAddress, str], tuple[str | bytes | int, ...]] = {}
        limit = self._max_bulk
        for position, outgoing in enumerate(batch):
            address = outgoing.address
            if not isinstance(address, RedisAddress):
                results[position] = UnavailableError(
                    f"{address!r} is not an address of Redis; use RedisTransport.to(…)"
                )
                continue
            try:
                stream = address.fixed_stream or address.stream_for(outgoing.message)
                command = commands.get((address, stream))
                if command is None:
                    command = commands[address, stream] = _command(address, stream, self._server_clock)
                packed = pack(*command, *fields_of(outgoing))
            except (PermanentError, UnavailableError) as refusal:
                results[position] = refusal
            except (UnicodeEncodeError, TypeError) as error:
                results[position] = PermanentError(
                    f"event {outgoing.message.event_id} cannot be encoded for Redis: {type(error).__name__}; "
                    "names and texts must be UTF-8"
                )
            else:
                if len(packed) > limit and (largest := _largest(outgoing)) > limit:
                    results[position] = PermanentError(
                        f"event {outgoing.message.event_id} has a field of {largest} bytes, and Redis accepts {limit} "
                        "(proto-max-bulk-len); store the content elsewhere and send a reference"
                    )
                else:
                    encoded.append((position, stream, packed))
        return encoded

    async def _add(
        self, connector: RedisConnector, left: _Encoded, batch: Sequence[Outgoing], results: list[SendResult]
    ) -> _Encoded:
        """Send and set the results. Returns the messages after one over which the server closed the connection: Redis
        did not read them."""
        commands = [packed for *_, packed in left]
        if self._wait_replicas:
            commands.append(pack("WAIT", self._wait_replicas, self._wait_ms))
        try:
            connection = await connector.ready()
            replies = connection.submit(commands, len(commands))
        except UnavailableError as error:
            _fail(left, error, results)
            return []
        if failpoints.armed:
            failpoints.hit("after-send")
        with connection.in_time:
            await replies.done
        if failpoints.armed:
            failpoints.hit("before-confirm")
        received = replies.received
        for (position, stream, _), reply in zip(left, received, strict=False):
            if type(reply) is not bytes:
                results[position] = refusal = self._error(reply, stream, batch[position])
                if isinstance(reply, ErrorReply) and reply.code in _NOT_MASTER:
                    connection.abort(UnavailableError(str(refusal)))
        if replies.lost is not None:
            # What was stored before it has not reached the replicas for certain, and nothing must overtake it.
            if received and _is_protocol_error(received[-1]) and not self._wait_replicas:
                return left[len(received) :]
            _fail(left[len(received) :], replies.lost, results)
        if self._wait_replicas and (too_few := self._check_replicas(left, received, results)) is not None:
            connection.abort(too_few)
        return []

    def _check_replicas(
        self, sent: _Encoded, received: list[Any], results: list[SendResult]
    ) -> UnavailableError | None:
        """Without a reply to WAIT, or with too few replicas, it is unknown whether the messages survive a failover."""
        reached = received[len(sent)] if len(received) > len(sent) else 0
        if isinstance(reached, int) and reached >= self._wait_replicas:
            return None
        error = UnavailableError(
            f"Redis at {self._endpoint} stored the events, but only {reached} of {self._wait_replicas} replicas "
            f"confirmed them within {self._wait_ms} ms; they are sent again"
        )
        _fail([one for one in sent if results[one[0]] is None], error, results)
        return error

    def _error(self, reply: object, stream: str, outgoing: Outgoing) -> SendError:
        """The result of a message for which Redis returned no entry id. If its destination has a stream for each of
        several events, the others are available: then it is an error of this message, which is deferred by itself."""
        where, event_id = f"Redis at {self._endpoint}", outgoing.message.event_id
        is_only_stream = isinstance(outgoing.address, RedisAddress) and outgoing.address.fixed_stream is not None
        if not isinstance(reply, ErrorReply):
            return RejectedError(
                f"{where} has no stream {stream!r} for event {event_id}: create it, or correct its name"
            )
        match reply.code:
            case "OOM":
                return NackedError(f"{where} is out of memory: {reply}; raise maxmemory or trim streams")
            case code if code in _OF_STREAM:
                reason = f"{where} refuses stream {stream!r}: {reply}"
                if code == "WRONGTYPE":
                    reason = f"the key {stream!r} of {where} is not a stream: {reply}; rename the key or the stream"
                return UnavailableError(reason) if is_only_stream else NackedError(reason)
            case "ERR" if _PROTOCOL_ERROR in str(reply) or any(text in str(reply) for text in _TOO_LARGE):
                return PermanentError(f"{where} refuses event {event_id}: {reply}")
            case "ERR" if "unknown command" not in str(reply) and "exhausted" not in str(reply):
                return RejectedError(f"{where} refuses event {event_id}: {reply}")
            case _:  # NOAUTH, LOADING, READONLY, MASTERDOWN, MISCONF, NOREPLICAS, BUSY, …
                return UnavailableError(f"{where} refuses stream {stream!r}: {reply}")


def _command(address: RedisAddress, stream: str, clock: ServerClock) -> tuple[str | bytes | int, ...]:
    """XADD up to its fields. Raises UnavailableError if the stream is trimmed by age and the age is not known."""
    create = () if address.create_stream else (b"NOMKSTREAM",)
    exactly = b"=" if address.trim == "exact" else b"~"
    if address.max_length is not None:
        return (b"XADD", stream, *create, b"MAXLEN", exactly, address.max_length, b"*")
    if address.max_age_ms is not None:
        return (b"XADD", stream, *create, b"MINID", exactly, max(0, clock.now_ms() - address.max_age_ms), b"*")
    return (b"XADD", stream, *create, b"*")


def _largest(outgoing: Outgoing) -> int:
    """Bytes of the largest field."""
    texts = (text for text in fields_of(outgoing) if isinstance(text, str))
    return max(len(outgoing.body), *(len(text.encode()) for text in texts))


def _is_protocol_error(reply: object) -> bool:
    return isinstance(reply, ErrorReply) and reply.code == "ERR" and _PROTOCOL_ERROR in str(reply)


def _fail(left: _Encoded, error: SendError, results: list[SendResult]) -> None:
    for position, *_ in left:
        results[position] = error
