"""One producer of librdkafka from its creation to its end, with the thread that serves its delivery reports.

A producer is never repaired. `failure` says why nothing can be produced any more; what is unconfirmed then fails. The
end of a producer keeps the order of each partition: within one producer, a message is stored only if all before it
were. For that, librdkafka ends the producer over any message that the broker refuses (`enable.gapless.guarantee`), the
broker refuses what was already on its way behind it, and nothing times out by itself: the thread and the caller notice
that reports stopped, and end the producer as a whole.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from pillarbox import failpoints
from pillarbox.core.errors import PermanentError, UnavailableError
from pillarbox.transports.kafka.driver import (
    BEHIND,
    COLLATERAL,
    FORBIDDEN,
    REFUSED,
    TIMED_OUT,
    TOO_LARGE,
    UNKNOWN_TOPIC,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    error_of,
    reason_of,
)
from pillarbox.transports.kafka.plugin import KafkaEndpoint
from pillarbox.transports.kafka.records import Record

_SETTINGS: Mapping[str, Any] = {
    "enable.idempotence": True,
    "enable.gapless.guarantee": True,
    "acks": "all",
    "partitioner": "murmur2_random",
    "message.timeout.ms": 0,
    "queue.buffering.max.kbytes": 131_072,
    "message.max.bytes": 100_000_000,
    "linger.ms": 1,
}
"""Without a limit of its own for a message, the broker decides what is too large; batches stay below `batch.size`."""
_POLL = 0.1
_REASON_WAITS = 100
_IDLE = 1.0
"""Seconds after which an idle thread serves errors."""

Partition = tuple[str, int]
"""Topic and number."""


class Reports:
    """The delivery reports of messages that were produced together."""

    __slots__ = ("_expected", "_loop", "_session", "began", "done", "errors", "partitions", "refused", "reported")

    def __init__(self, session: ProducerSession, loop: asyncio.AbstractEventLoop) -> None:
        self._session = session
        self._loop = loop
        self._expected = -1
        self.done: asyncio.Future[None] = loop.create_future()
        self.reported = 0
        """Only the producer's thread writes it."""
        self.began = session.reports
        self.errors: dict[int, KafkaError] = {}
        """Position → why the message was not stored."""
        self.refused: dict[int, PermanentError] = {}
        """Position → why librdkafka itself does not send it."""
        self.partitions: dict[int, Partition] = {}
        """Position → the partition of a message that was not stored, if it was known."""

    def report(self, position: int, error: KafkaError | None, message: Message) -> None:
        """Called in the producer's thread. Wakes the event loop once, with the last report."""
        session = self._session
        session.reports += 1
        if error is not None:
            self.errors[position] = error
            if (number := message.partition()) is not None and number >= 0:
                self.partitions[position] = message.topic() or "", number
            session.refused(error)
        else:
            session.confirmed[message.topic(), message.partition()] = session.reports
        self.reported += 1
        if self.reported == self._expected:
            self._session.call(self._finish)

    def expect(self, number: int) -> None:
        """State how many were produced."""
        self._expected = number
        if self.reported == number:
            self._finish()

    def _finish(self) -> None:
        if not self.done.done():
            self.done.set_result(None)


class ProducerSession:
    """A producer. Used from one event loop; `end` may be called from any thread."""

    def __init__(self, endpoint: KafkaEndpoint, *, window: int, timeout: float, singly: bool = False) -> None:
        """`singly`: messages are produced one by one, so that none waits for others to share a request with."""
        self._endpoint = endpoint
        self._timeout = timeout
        self._loop = asyncio.get_running_loop()
        self._last_error = ""
        self._work = threading.Event()
        self._lock = threading.Lock()
        self._wanting_room: list[asyncio.Future[None]] = []
        self.failure: UnavailableError | None = None
        self.is_silent = False
        """It ended because nothing was confirmed: those that had waited for long timed out."""
        self._is_rejected = False
        """It ended over a code in BEHIND, and no refused message that explains it is reported yet."""
        self.has_refusal = False
        """The broker refused a message or its topic: codes in BEHIND follow from that."""
        self.only_order = False
        """It ended only to keep the order: what failed with it can be produced again at once."""
        self.reports = 0
        """Grows with every report."""
        self.confirmed: dict[tuple[str | None, int | None], int] = {}
        """Partition → the number of the last report with which it confirmed a message."""
        self.topics: set[str] = set()
        """Topics that are known to exist."""
        own: dict[str, Any] = {"queue.buffering.max.messages": window, "error_cb": self._erred}
        if singly:
            own["linger.ms"] = 0
        try:
            self._producer: Producer | None = Producer({**_SETTINGS, **endpoint.settings(), **own})
        except KafkaException as error:
            raise UnavailableError(
                f"no producer for Kafka at {endpoint}: {reason_of(error_of(error))}; correct the settings"
            ) from None
        except (TypeError, ValueError) as error:
            raise UnavailableError(f"no producer for Kafka at {endpoint}: {error}; correct the settings") from None
        self._ended = self._loop.create_future()
        threading.Thread(target=self._run, args=(self._producer,), name="pillarbox-kafka-producer", daemon=True).start()

    async def ask(self, question: Callable[[Producer], Any]) -> Any:
        """Run a blocking call of the producer in a thread. Raises UnavailableError."""
        if (producer := self._producer) is None:
            raise self.failure or UnavailableError("the producer has ended")
        try:
            return await asyncio.to_thread(question, producer)
        except KafkaException as error:
            reason = self._last_error or reason_of(error_of(error))
            raise UnavailableError(f"Kafka at {self._endpoint} did not respond: {reason}") from None

    async def produce(self, records: Sequence[Record]) -> Reports:
        """Produce in order and wait for the reports."""
        reports = Reports(self, self._loop)
        seen, since = 0, time.monotonic()
        number = await self._enqueue(records, reports)
        if failpoints.armed:
            failpoints.hit("after-send")
        ends = (reports.done, self._ended)
        while not any(end.done() for end in ends):
            await asyncio.wait(ends, timeout=self._timeout / 4, return_when=asyncio.FIRST_COMPLETED)
            if self.failure is not None:
                continue  # what is reported now is its end
            if reports.reported != seen:
                seen, since = reports.reported, time.monotonic()
            elif time.monotonic() - since >= self._timeout:
                self._end_silent()
        # Sends that share the producer may have been confirmed, or have begun, a moment ago: they are produced again.
        if self.is_silent and time.monotonic() - since >= self._timeout / 2:
            timed_out = KafkaError(TIMED_OUT, "not confirmed in time")
            purged = [position for position, error in reports.errors.items() if error.code() in COLLATERAL]
            reports.errors |= dict.fromkeys(purged, timed_out)
        if not reports.done.done():  # some reports were lost: whatever they said, nothing is confirmed
            lost = KafkaError(KafkaError._PURGE_INFLIGHT, "its report was lost")
            reports.errors = dict.fromkeys((record.position for record in records), lost) | reports.errors
        if number < len(records):
            never = KafkaError(KafkaError._PURGE_QUEUE, "the producer ended before")
            reports.errors |= dict.fromkeys((record.position for record in records[number:]), never)
        if failpoints.armed:
            failpoints.hit("before-confirm")
        return reports

    def is_alone(self, position: int, reports: Reports, *, known: bool) -> bool:
        """Whether a message timed out while messages of other partitions were confirmed, which may be `known`."""
        if (own := reports.partitions.get(position)) is None or known:
            return own is not None
        confirmed = self.confirmed.copy()
        silent_since = max(reports.began, confirmed.pop(own, 0))
        return any(number > silent_since for number in confirmed.values())

    async def ended_for_order(self) -> bool:
        """Whether it ended only to keep the order; waits for the reason, which may follow the reports."""
        for _ in range(_REASON_WAITS):
            if self.failure is None:
                await asyncio.sleep(_POLL / 10)
        return self.failure is not None and self.only_order

    async def _enqueue(self, records: Sequence[Record], reports: Reports) -> int:
        """Put the messages into the queue of the producer; returns how many were put there or refused."""
        number, report = 0, reports.report
        try:
            while number < len(records) and self.failure is None and (producer := self._producer) is not None:
                produce: Callable[..., None] = producer.produce
                try:
                    for position, topic, key, value, headers, partition in records[number:] if number else records:
                        produce(topic, value, key, partition, on_delivery=partial(report, position), headers=headers)
                        number += 1
                except BufferError:
                    self._work.set()
                    await self._room()
                except KafkaException as raised:
                    error = error_of(raised)
                    if error.code() != TOO_LARGE:
                        if error.code() not in COLLATERAL:  # else the reason follows
                            self._end_over(error, only_order=False)
                        break
                    reports.refused[records[number].position] = PermanentError(
                        f"Kafka's client refuses the message: {reason_of(error)}"
                    )
                    number += 1
        finally:
            reports.expect(number - len(reports.refused))
            self._work.set()
        return number

    async def _room(self) -> None:
        """Wait for a report, which frees a place in the queue."""
        waiting: asyncio.Future[None] = self._loop.create_future()
        with self._lock:
            self._wanting_room.append(waiting)
        if self.failure is None:
            await waiting

    def end(self, failure: UnavailableError, *, only_order: bool = False, is_rejected: bool = False) -> None:
        """Accept nothing from now on; unconfirmed messages fail. The first reason stands, except that a refused message
        explains why the broker rejected what was behind it."""
        with self._lock:
            if self.failure is not None and not (self._is_rejected and self.has_refusal):
                return
            self.only_order = only_order
            self._is_rejected = is_rejected
            self.failure = failure
        self._work.set()

    async def aclose(self, failure: UnavailableError) -> None:
        """End it, and wait until every message has its report."""
        self.end(failure)
        await asyncio.shield(self._ended)

    def _run(self, producer: Producer) -> None:
        seen, since = 0, time.monotonic()
        while self.failure is None:
            if len(producer):
                self._poll(producer, _POLL)
            else:
                self._work.wait(_IDLE)
                self._work.clear()
                since = time.monotonic()
                self._poll(producer, 0)
            now = time.monotonic()
            if self.reports != seen or not len(producer):
                seen, since = self.reports, now
                self._give_room()
            elif now - since >= self._timeout:
                self._end_silent()
        self._producer = None
        self._give_room()
        self._drain(producer)
        self.call(self._set_ended)

    def _drain(self, producer: Producer) -> None:
        """Serve the reports of everything unconfirmed; wait for what is on its way if the broker ended it: some of it
        may be stored."""
        deadline = time.monotonic() + self._timeout
        is_answered = (self.only_order or self._is_rejected) and not self.is_silent
        producer.purge(in_queue=True, in_flight=not is_answered)
        while len(producer):
            self._poll(producer, _POLL)
            if time.monotonic() > deadline:
                producer.purge()

    def _poll(self, producer: Producer, timeout: float) -> None:
        """Serve reports and errors."""
        try:
            producer.poll(timeout)
        except KafkaException as error:  # a fatal error is raised, too
            self._erred(error_of(error))
        except Exception as error:  # a report failed, for lack of memory; without this thread, sends would wait forever
            self.end(UnavailableError(f"the producer for Kafka at {self._endpoint} ended: {type(error).__name__}"))

    def _give_room(self) -> None:
        with self._lock:
            waiting, self._wanting_room = self._wanting_room, []
        if waiting:
            self.call(partial(_wake, waiting))

    def call(self, action: Callable[[], None]) -> None:
        """Run something in the event loop."""
        try:
            self._loop.call_soon_threadsafe(action)
        except RuntimeError:
            return  # the event loop was closed before the producer

    def _set_ended(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)

    def refused(self, error: KafkaError) -> None:
        """Note the error of a message: the producer must not store what follows it. Called in its thread."""
        if (code := error.code()) in COLLATERAL:
            return
        is_refusal = code in REFUSED | FORBIDDEN | UNKNOWN_TOPIC
        self.has_refusal = self.has_refusal or is_refusal
        self._end_over(error, only_order=is_refusal, is_rejected=code in BEHIND)

    def _erred(self, error: KafkaError) -> None:
        """Called in the producer's thread, for errors that no message has."""
        self._last_error = reason_of(error)
        if error.fatal():
            self._end_over(error, only_order=error.code() in COLLATERAL)

    def _end_over(self, error: KafkaError, *, only_order: bool, is_rejected: bool = False) -> None:
        failure = UnavailableError(f"the producer for Kafka at {self._endpoint} ended: {reason_of(error)}")
        self.end(failure, only_order=only_order, is_rejected=is_rejected)

    def _end_silent(self) -> None:
        why = f": {self._last_error}" if self._last_error else ""
        if self.failure is None:
            self.is_silent = True
        self.end(
            UnavailableError(f"Kafka at {self._endpoint} confirmed nothing for {self._timeout:g} s{why}"),
            only_order=True,
        )


def _wake(waiting: Iterable[asyncio.Future[None]]) -> None:
    for one in waiting:
        if not one.done():
            one.set_result(None)
