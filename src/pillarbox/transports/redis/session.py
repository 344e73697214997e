"""One session of a consumer: two connections, the entries in flight, and what keeps them with this consumer.

One connection blocks in XREADGROUP; over the other go acknowledgements and scripts. If either is lost, the session has
ended: its entries stay pending in Redis, and the next session releases them, so that any consumer receives them.

Redis does not notice a crashed consumer. An entry that was idle for `claim_after` counts as abandoned, and any consumer
claims it. So the session restarts the idle time of its entries three times in that period, however long a handler
takes.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Container, Sequence
from typing import Any, NamedTuple

from pillarbox.core.clock import system_rng
from pillarbox.core.errors import ConfigurationError, UnavailableError
from pillarbox.core.retry import Backoff
from pillarbox.transports.redis import scripts
from pillarbox.transports.redis.connection import Argument, ErrorReply, RedisConnection, pack
from pillarbox.transports.redis.properties import ReceivedEntry
from pillarbox.transports.redis.scripts import QUARANTINE, WORK, ConsumerStreams

log = logging.getLogger("pillarbox.redis")

_MIN_VERSION = (7, 0)
_FIRST = "0-0"
_MIN_PAUSE = 0.05
"""Seconds between two checks for retries."""
_REFUSED_HERE = frozenset({"OOM", "NOPERM", "WRONGTYPE"})
"""Errors of a move that say nothing of the other messages in flight."""
_SHOWN = 10
"""Ids of deleted entries in a log line."""


class ClaimedEntry(NamedTuple):
    """An entry in flight: the number of its stream, and how often it was delivered."""

    number: int
    entry: ReceivedEntry
    deliveries: int

    @property
    def key(self) -> tuple[int, bytes]:
        return self.number, self.entry.entry_id


class SessionOptions(NamedTuple):
    """The options of a source, in seconds where they are times."""

    streams: ConsumerStreams
    consumer: str
    prefetch: int
    claim_after: float
    check_interval: float
    reply_timeout: float


class RedisConsumerSession:
    """See the module. `start` it once; once `failure` is set, it delivers and acknowledges nothing."""

    def __init__(self, reader: RedisConnection, control: RedisConnection, options: SessionOptions) -> None:
        self._reader = reader
        self._control = control
        self._options = options
        self._streams = options.streams
        self._identity: tuple[Argument, ...] = (options.streams.group, options.consumer)
        self._in_flight: set[tuple[int, bytes]] = set()
        """Fetched and not yet acknowledged, delivered or not."""
        self._last_copies: set[tuple[int, bytes]] = set()
        """Those in flight that were deleted from their stream: lost, unless they are acknowledged or moved."""
        self._fetched: deque[ClaimedEntry] = deque()
        self._fetching: asyncio.Task[None] | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._cursors: list[Argument] = [_FIRST, _FIRST, _FIRST]
        self._next_check = 0.0
        self._work_is_next = False
        self._ending = False
        self._changed = asyncio.Event()
        self.deleted = 0
        """Entries that were deleted from their stream while they were pending."""
        for connection in (reader, control):
            connection.on_lost = self.abort

    @property
    def failure(self) -> UnavailableError | None:
        return self._reader.lost or self._control.lost

    def abort(self, reason: UnavailableError) -> None:
        """End the session: everything in flight is delivered again."""
        for connection in (self._reader, self._control):
            if connection.lost is None:
                connection.abort(reason)
        for task in (self._fetching, self._keeping):
            if task is not None:
                task.cancel()
        self._changed.set()
        lost, self._last_copies = self._last_copies & self._in_flight, set()
        self._report(sorted(lost))

    async def start(self) -> None:
        """Create the groups, and release what this consumer had in an earlier session. Raises UnavailableError,
        ConfigurationError."""
        version = self._control.server.get("version", "")
        if _numbers(version) < _MIN_VERSION:
            raise ConfigurationError(
                f"Redis {version} has no XAUTOCLAIM that reports deleted entries; use 7.0 or later"
            )
        for stream in self._streams.consumed:
            try:
                await self._control.call("XGROUP", "CREATE", stream, self._streams.group, 0, "MKSTREAM")
            except ErrorReply as refusal:
                if refusal.code == "WRONGTYPE":
                    raise ConfigurationError(
                        f"the key {stream!r} is not a stream; rename the key or the stream"
                    ) from None
                if refusal.code != "BUSYGROUP":
                    raise self._refused(f"XGROUP CREATE {stream}", refusal) from refusal
        self._report(await self._script(scripts.START, self._streams.consumed, ()))
        if self.failure is not None:  # the reader, which nothing used so far
            raise self.failure
        self._keeping = asyncio.create_task(self._keep_alive())

    async def next(self) -> ClaimedEntry:
        """The next entry; can be cancelled without loss. Raises UnavailableError once the session has ended."""
        while True:
            if (failure := self.failure) is not None:
                raise failure
            if self._ending:
                raise UnavailableError(f"the source of {self._streams.work!r} is closed")
            if self._fetched:
                return self._fetched.popleft()
            if self._fetching is None and self._free > 0:
                self._fetching = asyncio.create_task(self._fetch())
                self._fetching.add_done_callback(_retrieve)
            if self._fetching is None:
                self._changed.clear()
                await self._changed.wait()
                continue
            await asyncio.wait({self._fetching})  # a cancelled caller leaves the task to the next one
            task, self._fetching = self._fetching, None
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error

    async def ack(self, claimed: ClaimedEntry) -> None:
        """Raises UnavailableError if the session has ended: then the entry is delivered again."""
        self._check(claimed)
        self._settled(claimed)
        group, entry_id = self._streams.group, claimed.entry.entry_id
        if claimed.number == WORK:
            await self._command("XACK", claimed.entry.stream, group, entry_id)
        else:
            await self._command("EVAL", scripts.ACK, 1, claimed.entry.stream, group, entry_id)

    async def move(self, claimed: ClaimedEntry, to: str, fields: Sequence[Argument], *, delay: float | None) -> None:
        """Move an entry to another stream in one step, with a time at which it is due, if `delay` says so.

        Retries while Redis is out of memory, or refuses the keys of the move. Raises UnavailableError if the session
        has ended, or if another consumer has claimed the entry.
        """
        backoff, logged = Backoff(system_rng()), ""
        due = "" if delay is None else max(0, round(delay * 1000))
        private = "0" if claimed.number == WORK else "1"
        keys = (claimed.entry.stream, to, self._streams.due)
        while True:
            self._check(claimed)
            try:
                moved = await self._script(
                    scripts.MOVE, keys, (claimed.entry.entry_id, private, due, *fields), passed_on=_REFUSED_HERE
                )
            except ErrorReply as refusal:
                if refusal.code != logged:
                    logged = refusal.code
                    log.warning(
                        "entry %s of stream %r waits in this consumer: Redis refuses to move it to %r: %s",
                        *(claimed.entry.entry_id.decode(), claimed.entry.stream, to, refusal),
                    )
                await asyncio.sleep(backoff.next())
                continue
            self._settled(claimed)
            if not moved:
                raise UnavailableError(
                    f"another consumer has claimed entry {claimed.entry.entry_id.decode()} of "
                    f"{claimed.entry.stream!r}; raise claim_after if no consumer crashed"
                )
            return

    async def end(self, reason: UnavailableError) -> None:
        """Release everything in flight, so that other consumers receive it at once; then end the session."""
        if self.failure is None:
            try:
                await self._release()
            except UnavailableError:
                log.debug("the entries in flight are claimed once they were idle for claim_after")
        self.abort(reason)
        if self._keeping is not None:
            await asyncio.wait({self._keeping})

    async def _release(self) -> None:
        """Entries that Redis delivers after the release would be idle for `claim_after`: wait for the read to end."""
        self._ending = True
        self._unblock()
        if self._fetching is not None:
            await asyncio.wait({self._fetching}, timeout=self._options.check_interval + self._options.reply_timeout)
        self._report(await self._script(scripts.END, self._streams.consumed, ()))

    @property
    def _free(self) -> int:
        return self._options.prefetch - sum(number != QUARANTINE for number, _ in self._in_flight)

    def _check(self, claimed: ClaimedEntry) -> None:
        failure = self.failure
        if failure is None and claimed.key in self._in_flight:
            return
        why = failure or "it was acknowledged before"
        raise UnavailableError(f"the message can no longer be acknowledged: {why}") from failure

    def _settled(self, claimed: ClaimedEntry) -> None:
        self._in_flight.discard(claimed.key)
        self._changed.set()
        if claimed.number == QUARANTINE and self.failure is None:  # there may be more
            self._next_check = 0.0
            self._unblock()

    def _unblock(self) -> None:
        """End a read that waits. If CLIENT UNBLOCK is forbidden, the read ends by itself."""
        if self._fetching is not None:
            self._control.submit([pack("CLIENT", "UNBLOCK", self._reader.server.get("id", "0"))], 1)

    @property
    def _quarantine_is_free(self) -> bool:
        """Whether no message of quarantine is in flight."""
        return all(number != QUARANTINE for number, _ in self._in_flight)

    async def _fetch(self) -> None:
        """Wait for entries. Those of crashed consumers, and those whose delay is over, come in turn with new ones."""
        loop = asyncio.get_running_loop()
        while not self._fetched and not self._ending:
            if loop.time() >= self._next_check and not self._work_is_next:
                await self._fetch_abandoned_and_due()
                self._work_is_next = True
                continue
            self._work_is_next = False
            block = max(1, round((self._next_check - loop.time()) * 1000))
            try:
                reply = await self._reader.call(
                    *("XREADGROUP", "GROUP", *self._identity, "COUNT", self._free, "BLOCK", block),
                    *("STREAMS", self._streams.work, ">"),
                    block=block / 1000,
                )
            except ErrorReply as refusal:
                raise self._refused("XREADGROUP", refusal) from refusal
            for entry_id, fields in reply[0][1] if reply else ():
                self._add(WORK, entry_id, 1, fields)

    async def _fetch_abandoned_and_due(self) -> None:
        free = self._quarantine_is_free
        idle = max(1, round(self._options.claim_after * 1000))
        keys = (*self._streams.consumed, self._streams.delayed, self._streams.due)
        if not free:
            self._cursors[-1] = _FIRST  # the next one is looked for from the beginning
        found, deleted, self._cursors, due = await self._script(
            scripts.FETCH, keys, (idle, self._free, "1" if free else "0", *self._cursors)
        )
        pause = self._options.check_interval
        if found or any(cursor != _FIRST.encode() for cursor in self._cursors) or free != self._quarantine_is_free:
            pause = 0.0  # there may be more
        elif due >= 0:
            # A retry that is due and was not found waits for memory: do not ask in a loop.
            pause = min(pause, max(due / 1000, _MIN_PAUSE))
        self._next_check = asyncio.get_running_loop().time() + pause
        for number, entry_id, count, fields in found:
            self._add(number, entry_id, count, fields)
        self._report(deleted)

    def _report(self, deleted: Sequence[tuple[int, bytes]]) -> None:
        if not deleted:
            return
        self.deleted += len(deleted)
        shown = ", ".join(entry_id.decode() for _, entry_id in deleted[:_SHOWN])
        log.warning(
            "%d entries of stream %r were deleted before group %r acknowledged them, by trimming or XDEL, and are "
            "lost to it: %s; raise max_length or max_age of the destination",
            *(len(deleted), self._streams.work, self._streams.group, shown),
        )

    def _add(self, number: int, entry_id: bytes, deliveries: int, fields: Sequence[bytes]) -> None:
        claimed = ClaimedEntry(number, ReceivedEntry(self._streams.consumed[number - 1], entry_id, fields), deliveries)
        if claimed.key not in self._in_flight:  # else this consumer claimed its own entry, kept alive too late
            self._in_flight.add(claimed.key)
            self._fetched.append(claimed)

    async def _keep_alive(self) -> None:
        while True:
            await asyncio.sleep(self._options.claim_after / 3)
            if self._in_flight:
                entries = [part for key in self._in_flight for part in key]
                try:
                    deleted = await self._script(scripts.KEEP, self._streams.consumed, entries)
                except UnavailableError:
                    return
                self._last_copies.update((number, entry_id) for number, entry_id in deleted)
                self._last_copies &= self._in_flight

    async def _script(
        self, script: str, keys: Sequence[str], arguments: Sequence[Argument], *, passed_on: Container[str] = ()
    ) -> Any:
        """Run a script with group and consumer as its first arguments. Raises UnavailableError; ErrorReply for the
        codes in `passed_on`."""
        return await self._command("EVAL", script, len(keys), *keys, *self._identity, *arguments, passed_on=passed_on)

    async def _command(self, *command: Argument, passed_on: Container[str] = ()) -> Any:
        try:
            return await self._control.call(*command)
        except ErrorReply as refusal:
            if refusal.code in passed_on:
                raise
            raise self._refused(str(command[0]), refusal) from refusal

    def _refused(self, what: str, refusal: ErrorReply) -> UnavailableError:
        """A server that refuses a command of a source refuses the next ones, too: end the session."""
        lost = UnavailableError(
            f"stream {self._streams.work!r} cannot be consumed: Redis refuses {what}: {refusal}; it is retried"
        )
        self.abort(lost)
        return lost


def _retrieve(task: asyncio.Task[None]) -> None:
    """`next` raises the exception if it is called again; if not, the session has ended anyway."""
    if not task.cancelled():
        task.exception()


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
