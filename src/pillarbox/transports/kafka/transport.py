"""Kafka as a transport: connects on demand, produces whole batches in order, returns one result per message.

A partition that confirms nothing while others do is left out, see `partitions.py`.

Nothing reconnects in the background for longer than `send_timeout`: a producer that confirms nothing for that long
ends, everything unconfirmed fails with it, and the next `send` opens a new one.

If the broker refuses a request, it does not name the message, and the producer ends so that nothing overtakes. What was
not stored is produced again in its order: one by one over a producer of its own until the culprit is found, then the
rest at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pillarbox.core.clock import Duration
from pillarbox.core.errors import PermanentError, UnavailableError
from pillarbox.core.transport import Address, Outgoing, Pace
from pillarbox.settings.shared import SEND_TIMEOUT
from pillarbox.settings.tls import TlsOptions
from pillarbox.transports.kafka.driver import (
    BEHIND,
    COLLATERAL,
    FORBIDDEN,
    REFUSED,
    TIMED_OUT,
    UNKNOWN_TOPIC,
    KafkaError,
    reason_of,
)
from pillarbox.transports.kafka.partitions import Silent, SilentPartitions
from pillarbox.transports.kafka.plugin import KafkaAddress, KafkaEndpoint, KafkaOptions, SaslMechanism, positive
from pillarbox.transports.kafka.producer import ProducerSession
from pillarbox.transports.kafka.records import Record
from pillarbox.transports.kafka.results import Results, fail, of_topic, records_of, without_keys_of
from pillarbox.transports.kafka.topics import Topics

BATCH = 500
"""Messages in one batch."""
BATCH_BYTES = 1024 * 1024
"""Bytes in one batch: on a slow link, confirmed messages are settled before the rest has left."""
_NEVER = UnavailableError("the broker never confirmed the message; it is sent again")
_CLOSED = "the Kafka transport is closed; open a new one"


class KafkaTransport:
    """A cluster. Makes no connection until something is sent or pinged.

    `url` is `kafka[s]://user:password@host:port,host:port`; `window` limits the unconfirmed messages; with `declare`,
    missing topics are created. Raises ConfigurationError.
    """

    address_type: type[Address] = KafkaAddress
    to = KafkaAddress
    """`KafkaTransport.to(topic="orders")`: an address on a cluster."""

    def __init__(
        self,
        url: str,
        *,
        window: int = KafkaOptions.window,
        declare: bool = KafkaOptions.declare,
        partitions: int = KafkaOptions.partitions,
        replication: int = KafkaOptions.replication,
        send_timeout: Duration = SEND_TIMEOUT,
        connect_timeout: Duration = KafkaOptions.connect_timeout,
        sasl_mechanism: SaslMechanism = KafkaOptions.sasl_mechanism,
        tls: TlsOptions | None = None,
        client: Mapping[str, Any] | None = None,
    ) -> None:
        options = KafkaOptions(
            window=window,
            declare=declare,
            partitions=partitions,
            replication=replication,
            connect_timeout=connect_timeout,
            sasl_mechanism=sasl_mechanism,
            **asdict(tls or TlsOptions()),
            client=client,
        )
        self._endpoint = KafkaEndpoint.parse(url, options)
        self._timeout = positive("send_timeout", send_timeout)
        self._topics = Topics(self._endpoint, options, positive("connect_timeout", connect_timeout))
        self._connect_timeout = positive("connect_timeout", connect_timeout)
        self._silent = SilentPartitions(self._endpoint, self._topics, self._timeout)
        self._window = window
        self._pace = Pace(
            batch_size=min(BATCH, window), concurrency=2, in_order=True, bytes=BATCH_BYTES, progress=self._progress
        )
        self._shared: ProducerSession | None = None
        self._open: set[ProducerSession] = set()
        self._search = asyncio.Lock()
        self._reports = 0
        self._closed = False

    def __repr__(self) -> str:
        return f"<KafkaTransport at {self._endpoint}>"

    @property
    def pace(self) -> Pace:
        return self._pace

    def defaults(self, event_type: str) -> Mapping[str, Address]:
        """The topic named after the type, which the first send creates."""
        return {event_type: KafkaAddress()}

    async def send(self, batch: Sequence[Outgoing]) -> Results:
        """Produce everything at once and wait for the reports. Raises UnavailableError once closed."""
        self._check_open()
        results: Results = [_NEVER] * len(batch)
        pending = records_of(batch, results)
        search = False
        while pending:
            try:
                if search:
                    pending = await self._send_singly(pending, batch, results)
                    search = False
                else:
                    session = await self._session()
                    pending = await self._with_topics(session, pending, batch, results)
                    pending, search = await self._produce_apart(session, pending, batch, results)
            except UnavailableError as error:
                # The rest must not go over a new producer: it would overtake unconfirmed messages of its keys.
                fail(pending, error, results)
                break
        return results

    async def ping(self) -> None:
        """Connect and wait for a reply. Raises UnavailableError."""
        session = await self._session()
        await session.ask(lambda producer: self._topics.describe(producer, "pillarbox-ping"))

    async def aclose(self) -> None:
        """End the producers; messages in flight fail with UnavailableError. Closing twice is fine."""
        self._closed = True
        for session in list(self._open):
            await self._discard(session, UnavailableError(_CLOSED))

    async def _session(self) -> ProducerSession:
        """The producer that all sends share; a new one if it has ended. Raises UnavailableError."""
        self._check_open()
        if self._shared is None or self._shared.failure is not None:
            if (ended := self._shared) is not None:
                self._shared = None
                await self._discard(ended, UnavailableError("ended"))
                return await self._session()
            self._shared = self._opened()
        return self._shared

    def _opened(self, *, singly: bool = False) -> ProducerSession:
        session = ProducerSession(self._endpoint, window=self._window, timeout=self._timeout, singly=singly)
        self._open.add(session)
        return session

    async def _discard(self, session: ProducerSession, failure: UnavailableError) -> None:
        """End a producer, and wait until what it had has been reported: nothing of it arrives later."""
        await session.aclose(failure)
        if session in self._open:
            self._open.remove(session)
            self._reports += session.reports

    async def _with_topics(
        self, session: ProducerSession, records: Sequence[Record], batch: Sequence[Outgoing], results: Results
    ) -> list[Record]:
        """The messages whose topic exists; the others fail. Raises UnavailableError if no broker responds."""
        unseen = {record.topic for record in records} - session.topics
        if not unseen:
            return list(records)
        errors = self._topics.known_missing(unseen)
        if unknown := unseen - errors.keys():
            errors |= await session.ask(lambda producer: self._topics.missing(producer, sorted(unknown)))
        session.topics |= unseen - errors.keys()
        for record in records:
            if (error := errors.get(record.topic)) is not None:
                results[record.position] = of_topic(batch[record.position], error)
        return [record for record in records if record.topic not in errors]

    async def _produce_apart(
        self, session: ProducerSession, records: Sequence[Record], batch: Sequence[Outgoing], results: Results
    ) -> tuple[list[Record], bool]:
        """As `_produce`; messages to silent partitions are deferred, or sent over a producer of their own."""
        others, silent = self._silent.split(records) if self._silent else (records, [])
        if not silent:
            return await self._produce(session, others, batch, results)
        with self._silent.checking() as now:
            if not now:
                for record, partition in silent:
                    results[record.position] = self._silent.error(partition, batch[record.position])
                return await self._produce(session, others, batch, results)
            (left, search), (more, search_more) = await asyncio.gather(
                self._produce(session, others, batch, results), self._check(silent, batch, results)
            )
            return sorted([*left, *more], key=lambda record: record.position), search or search_more

    async def _check(self, silent: Silent, batch: Sequence[Outgoing], results: Results) -> tuple[list[Record], bool]:
        """As `_produce`; what is still not confirmed is deferred."""
        try:
            session = self._opened()
        except UnavailableError as error:
            fail([record for record, _ in silent], error, results)
            return [], False
        try:
            left, search = await self._produce(session, [record for record, _ in silent], batch, results, checked=True)
        finally:
            await self._discard(session, UnavailableError("ended"))
        for record, partition in silent:
            if results[record.position] is None or isinstance(results[record.position], PermanentError):
                self._silent.responds(partition)
        return left, search

    async def _produce(
        self,
        session: ProducerSession,
        records: Sequence[Record],
        batch: Sequence[Outgoing],
        results: Results,
        *,
        checked: bool = False,
    ) -> tuple[list[Record], bool]:
        """Produce; returns what has no result yet, and whether the culprit of a refused request must be found.

        `checked`: the messages are for partitions that were silent before.
        """
        if not records:
            return [], False
        reports = await session.produce(records)
        errors, permanent = reports.errors, reports.refused
        if not errors and not permanent:
            for record in records:
                results[record[0]] = None
            return [], False
        pending: list[Record] = []
        unusable: dict[str, UnavailableError] = {}
        refused = False
        collateral = COLLATERAL | BEHIND if session.has_refusal else COLLATERAL
        is_collateral = any(error.code() in collateral for error in errors.values())
        ended_for_order = is_collateral and await session.ended_for_order()
        failure: UnavailableError | None = None
        alone: list[Record] = []
        for record in records:
            position = record.position
            error = errors.get(position)
            if position in permanent:
                results[position] = permanent[position]
            elif error is None:
                results[position] = None
            elif error.code() in FORBIDDEN:
                unusable.setdefault(record.topic, self._topics.forbidden(record.topic, error))
                results[position] = of_topic(batch[position], unusable[record.topic])
            elif error.code() in UNKNOWN_TOPIC:
                unusable.setdefault(record.topic, self._topics.unknown(record.topic))
                results[position] = of_topic(batch[position], unusable[record.topic])
            elif error.code() in REFUSED:
                refused = True
                pending.append(record)
            elif error.code() in collateral and ended_for_order:
                pending.append(record)
            elif error.code() == TIMED_OUT and session.is_alone(position, reports, known=checked):
                alone.append(record)
            else:
                failure = session.failure or UnavailableError(f"Kafka failed: {reason_of(error)}")
                results[position] = failure
        for record in alone:
            self._silent.add(reports.partitions[record.position])
        for record in alone:
            results[record.position] = self._silent.error(reports.partitions[record.position], batch[record.position])
        if failure is not None:
            if session.is_silent:
                self._silent.add_unclear(reports.partitions.values())
            # What comes behind a message that may be unsent must not overtake it.
            fail(pending, failure, results)
            return [], False
        if alone:
            # Some may not have been in the queue of the producer yet.
            pending = without_keys_of(alone, pending, results)
        for record in pending:
            if record.topic in unusable:
                results[record.position] = of_topic(batch[record.position], unusable[record.topic])
        pending = [record for record in pending if record.topic not in unusable]
        if len(records) == 1 and refused:
            [record] = pending
            results[record.position] = self._refusal(batch[record.position], errors[record.position])
            return [], False
        return pending, refused

    async def _send_singly(
        self, records: Sequence[Record], batch: Sequence[Outgoing], results: Results
    ) -> list[Record]:
        """Produce one by one until the broker refuses one; returns the rest.

        One send at a time, over a producer of its own: librdkafka could put the messages of two sends into one request.
        """
        async with self._search:
            self._check_open()
            session = self._opened(singly=True)
            try:
                for number, record in enumerate(records, 1):
                    left, _ = await self._produce(session, [record], batch, results)
                    if isinstance(error := results[record.position], UnavailableError) and not left:
                        fail(records[number:], error, results)  # they must not overtake it
                        return []
                    if session.failure is not None:
                        return [*left, *records[number:]]
            finally:
                await self._discard(session, UnavailableError("ended"))
        return []

    def _refusal(self, outgoing: Outgoing, error: KafkaError) -> PermanentError:
        size = len(outgoing.body)
        return PermanentError(
            f"Kafka refuses event {outgoing.message.event_id} of {size} bytes: {reason_of(error)}; raise "
            "max.message.bytes of the topic if it is too large, else correct the event"
        )

    def _check_open(self) -> None:
        if self._closed:
            raise UnavailableError(_CLOSED)

    def _progress(self) -> object:
        return self._reports + sum(session.reports for session in self._open)
