"""One consumer of librdkafka from its creation to its end, and the thread in which all of its calls block.

The thread polls, pauses, commits and answers rebalances. What it shares with the event loop is guarded by one lock:
the messages, and why there are none. It polls also when the consumer is busy, because a group excludes a member that
does not; then its partitions are paused.

An outage does not end the consumer, which would have to join its group again: librdkafka reconnects. But everything in
flight is void, and each partition is read again from its first unacknowledged message.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from pillarbox.core.errors import UnavailableError
from pillarbox.transports.kafka.driver import (
    ALL_BROKERS_DOWN,
    FORBIDDEN,
    UNKNOWN_TOPIC,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
    error_of,
    reason_of,
)
from pillarbox.transports.kafka.messages import PartitionMessages
from pillarbox.transports.kafka.offsets import Assignment, Commit, Received
from pillarbox.transports.kafka.pauses import Pauses
from pillarbox.transports.kafka.plugin import KafkaEndpoint
from pillarbox.transports.kafka.records import due_of, headers_of
from pillarbox.transports.kafka.starting_offsets import StartAt, read_starts

_log = logging.getLogger("pillarbox.transports.kafka")

_SETTINGS: Mapping[str, Any] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "partition.assignment.strategy": "cooperative-sticky",
    "queued.max.messages.kbytes": 16_384,
    "fetch.queue.backoff.ms": 50,
}
_POLL = 0.2
"""Seconds after which the thread does what else there is to do."""
_POLL_FOR_COMMIT = 0.01
"""The same while a message waits for a commit: nothing ends the wait when that is confirmed."""
_COMMIT = 0.5
"""Seconds between commits."""


class KafkaConsumerSession:
    """A member of a group. `take` and `acknowledge` belong to the event loop."""

    def __init__(
        self,
        endpoint: KafkaEndpoint,
        *,
        topics: Sequence[str],
        retry_topic: str,
        group: str,
        start: StartAt,
        prefetch: int,
        timeout: float,
    ) -> None:
        """`start`: where a group begins that has committed nothing; `timeout`: seconds to wait for offsets."""
        self._endpoint = endpoint
        self._topics = list(topics)
        self._retry_topic = retry_topic
        self._start: StartAt = start
        self._timeout = timeout
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._messages = PartitionMessages(prefetch)
        self._something_to_do = threading.Event()
        self._arrived = asyncio.Event()
        self._committed_at = 0.0
        self._commit_now = False
        self._commit_failure = "there was no answer"
        self._rewind = False
        self._closing = False
        self._reachable = True
        self.ended = False
        """It cannot recover: a new one must join the group."""
        self.failure: UnavailableError | None = None
        """Why nothing can be received; `recover` ends it."""
        own = {
            "group.id": group,
            "auto.offset.reset": "earliest",
            "error_cb": self._erred,
            "on_commit": self._committed,
        }
        try:
            self._consumer = Consumer({**_SETTINGS, **endpoint.settings(), **own})
        except KafkaException as error:
            raise UnavailableError(
                f"no consumer for Kafka at {endpoint}: {reason_of(error_of(error))}; correct the settings"
            ) from None
        self._pauses = Pauses(self._consumer, retry_topic)
        self._ended = asyncio.Event()
        threading.Thread(target=self._run, name="pillarbox-kafka-consumer", daemon=True).start()

    @property
    def is_paused(self) -> bool:
        """Whether a partition is paused."""
        return bool(self._pauses)

    async def take(self) -> Received:
        """Wait for a message, which is then in flight. Raises UnavailableError while there is an outage."""
        while True:
            self._arrived.clear()
            with self._lock:
                if self.failure is not None:
                    raise self.failure
                if (message := self._messages.take()) is not None:
                    return message
            await self._arrived.wait()

    def acknowledge(self, message: Received, *, rejected: bool = False) -> None:
        """Let the offset of the message be committed. Raises UnavailableError if it is delivered again."""
        with self._lock:
            if self.failure is not None or not self._messages.acknowledge(message, rejected=rejected):
                raise UnavailableError(
                    f"the message can no longer be acknowledged: {self.failure or 'its partition was revoked'}; "
                    "it is delivered again"
                )
        self._made_room()

    def hold(self, message: Received, due: float) -> None:
        """Deliver a message in flight once more when it is due, a time in seconds since 1970. Until then nothing behind
        it is committed. Raises UnavailableError if it is delivered again anyway."""
        with self._lock:
            if self.failure is not None or not self._messages.hold(message, due=due):
                raise UnavailableError("the message can no longer be retried: it is delivered again")
        self._made_room()

    def _made_room(self) -> None:
        self._arrived.set()  # another message may be ready
        self._something_to_do.set()

    def is_current(self, message: Received) -> bool:
        """Whether the message can still be acknowledged."""
        return self.failure is None and not message.assignment.over

    def recover(self) -> None:
        """Receive again after an outage, from the first unacknowledged message of each partition."""
        with self._lock:
            if self.ended:
                return
            self._rewind = True
            self._reachable = True
            self.failure = None
        self._something_to_do.set()

    def fail(self, failure: UnavailableError, *, reachable: bool = False) -> None:
        """Note an outage: everything in flight is void."""
        with self._lock:
            if self.failure is None:
                self.failure = failure
                self._reachable = reachable
                self._messages.restart()
        self._wake()

    async def aclose(self, bound: float) -> None:
        """Commit what was acknowledged and leave the group; waits at most `bound` seconds for it."""
        with self._lock:
            self._closing = True
            if self.failure is None:
                self._messages.leave()
                self.failure = UnavailableError("the source is closed")
        self._wake()
        self._something_to_do.set()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), bound)

    def _run(self) -> None:
        try:
            self._consumer.subscribe(
                self._topics, on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
            )
            while not self._closing and not self.ended:
                self._serve()
            if self._reachable:
                self._commit(wait=True)
        except KafkaException as error:
            self._end(reason_of(error_of(error)))
        except Exception as error:  # without its thread, a consumer would wait forever
            _log.exception("the consumer of Kafka at %s ended", self._endpoint)
            self._end(type(error).__name__)
        with suppress(KafkaException, RuntimeError):
            self._consumer.close()
        with suppress(RuntimeError):  # the event loop was closed before
            self._loop.call_soon_threadsafe(self._ended.set)

    def _end(self, reason: str) -> None:
        """Leave the group over an error that this consumer cannot recover from."""
        self.ended = True
        self.fail(UnavailableError(f"the consumer of Kafka at {self._endpoint} ended: {reason}"))

    def _serve(self) -> None:
        """One turn of the thread."""
        now, wall = time.monotonic(), time.time()
        if self._rewind and self._seek():
            self._rewind = False
        with self._lock:
            uncounted = self._messages.end_wait(now, now=wall)
            ready = self._messages.release(wall) or uncounted
            self._commit_now |= (isolated := self._messages.isolate())
            waits_for_commit = self._messages.awaits_commit
            stopped = self.failure is not None or self._messages.full or self._messages.alone_in_flight
            due = self._messages.next_due
            pauses = self._pauses.wanted(self._messages, stopped=stopped, at_once=waits_for_commit, now=now)
        if uncounted:
            _log.warning("Kafka at %s commits nothing, so counts no crash: %s", self._endpoint, self._commit_failure)
        if ready or isolated:
            self._wake()
        self._pauses.apply(pauses)
        if self._commit_now or now - self._committed_at >= _COMMIT:
            self._commit_now = False
            self._committed_at = now
            self._commit(wait=False)
        most = _POLL_FOR_COMMIT if waits_for_commit else _POLL
        wait = most if due is None else min(most, max(0.0, due - wall))
        if stopped and not waits_for_commit:
            self._something_to_do.wait(_POLL)
            self._something_to_do.clear()
            if not self._pauses.are_long(now):
                return
            wait = 0
        if (message := self._consumer.poll(wait)) is not None:
            self._receive(message)

    def _receive(self, message: Message) -> None:
        if (error := message.error()) is not None:
            self._refused(error)
            return
        name = (message.topic() or "", message.partition() or 0)
        headers = headers_of(message)
        offset = message.offset() or 0
        due = due_of(headers) if name[0] == self._retry_topic else 0.0
        with self._lock:
            if (assignment := self._messages.assignments.get(name)) is None:
                return
            if self.failure is not None or self._rewind:
                assignment.skip(offset)
                return
            assignment = self._messages.assignment_of(name, offset)
            received = Received(assignment, offset, message.key(), message.value(), headers)
            self._commit_now |= not assignment.waiting and not assignment.marked
            is_ready = self._messages.receive(received, due=due, now=time.time())
        if is_ready:
            self._wake()

    def _commit(self, *, wait: bool, assignments: Iterable[Assignment] | None = None) -> None:
        with self._lock:
            offsets: list[TopicPartition] = []
            for one in self._messages.assignments.values() if assignments is None else assignments:
                if (wanted := one.to_commit) is not None:
                    one.committed = wanted
                    offsets.append(TopicPartition(*one.name, *wanted))
        if not offsets:
            return
        commit: Callable[..., object] = self._consumer.commit
        with suppress(KafkaException):  # then they are delivered again, to the owner of the partition
            commit(offsets=offsets, asynchronous=not wait)

    def _committed(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        """Called in the thread: deliver what waited for this, and commit again what was not committed."""
        ready, refused = False, None
        if any(one.error is not None for one in partitions):
            error = None  # it is that of one partition: what has none was committed
        with self._lock:
            for one in partitions:
                name = (one.topic, one.partition)
                if (failed := error or one.error) is None:
                    ready |= self._messages.note_commit(name, Commit(one.offset, one.metadata or ""), now=time.time())
                elif (assignment := self._messages.assignments.get(name)) is not None:
                    assignment.committed = None
                    assignment.uncounted |= failed.code() == KafkaError.OFFSET_METADATA_TOO_LARGE
                    refused = failed
        if ready:
            self._wake()
        if refused is not None:
            self._commit_failure = reason_of(refused)
            _log.debug("Kafka at %s committed no offset: %s", self._endpoint, self._commit_failure)
            self._refused(refused)

    def _seek(self) -> bool:
        """Read every partition again from its first unacknowledged message; False: not yet possible."""
        with self._lock:
            assigned = self._messages.assignments.values()
            places = [TopicPartition(*one.name, one.start) for one in assigned if one.start is not None]
        try:
            for place in places:
                self._consumer.seek(place)
        except KafkaException:  # the partition is being assigned; what it delivers until then is skipped
            return False
        return True

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if not partitions:
            return
        starts = read_starts(
            consumer, partitions, start=self._start, retry_topic=self._retry_topic, timeout=self._timeout
        )
        places = [one.place for one in starts]
        consumer.incremental_assign(places)
        self._pauses.end(places)
        with self._lock:
            for one in starts:
                self._messages.assign(one.name, start=one.offset, committed=one.committed, counts=one.counts)

    def _revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        names = [(one.topic, one.partition) for one in partitions]
        with self._lock:
            ended = self._messages.end(names) if self._closing else self._messages.revoke(names)
            reachable = self._reachable
        if reachable:
            self._commit(wait=True, assignments=ended)
        self._something_to_do.set()
        self._wake()  # another message may be ready

    def _lost(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        with self._lock:
            self._messages.end((one.topic, one.partition) for one in partitions)
        self._wake()

    def _erred(self, error: KafkaError) -> None:
        """Called in the thread, for errors that no message has."""
        if error.code() == ALL_BROKERS_DOWN or error.fatal():
            self._refused(error)

    def _refused(self, error: KafkaError) -> None:
        if error.fatal():
            self._end(reason_of(error))
        elif error.code() in FORBIDDEN | UNKNOWN_TOPIC | _OUTAGES:
            self.fail(UnavailableError(f"Kafka at {self._endpoint}: {reason_of(error)}"))

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the event loop was closed before
            self._loop.call_soon_threadsafe(self._arrived.set)


_OUTAGES = frozenset((ALL_BROKERS_DOWN, KafkaError.GROUP_AUTHORIZATION_FAILED))
