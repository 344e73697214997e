"""Delivery reports of a batch with a refused message, in any order: the culprit is found, and the others are sent."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from itertools import permutations
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError

from pillarbox.core.errors import PermanentError, UnavailableError
from pillarbox.core.transport import SendResult
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.transports.kafka import KafkaTransport
from pillarbox.transports.kafka.plugin import KafkaEndpoint, KafkaOptions
from pillarbox.transports.kafka.producer import ProducerSession, Reports
from pillarbox.transports.kafka.records import Record

URL = "kafka://127.0.0.1:1"
TOPIC = "orders"
CULPRIT = 1
TOO_LARGE, INVALID, PURGED = KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_RECORD, KafkaError._PURGE_QUEUE
FOLLOW_UPS = [
    KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.UNKNOWN_PRODUCER_ID,
]


class Reported:
    """A message as reports have it."""

    def topic(self) -> str:
        return TOPIC

    def partition(self) -> int:
        return 0


REPORTED = Reported()


class ReportingSession(ProducerSession):
    """Reports these codes by position instead of sending; 0: stored."""

    def __init__(self, codes: Mapping[int, int], stored: list[int], *, singly: bool = False) -> None:
        super().__init__(KafkaEndpoint.parse(URL, KafkaOptions()), window=100, timeout=60.0, singly=singly)
        self._codes = codes
        self._stored = stored
        self.topics.add(TOPIC)

    async def _enqueue(self, records: Sequence[Record], reports: Reports) -> int:
        own = {record.position for record in records}
        for position, code in self._codes.items():
            if position in own:
                reports.report(position, KafkaError(code) if code else None, cast(Any, REPORTED))
                self._stored += [] if code else [position]
        reports.expect(len(own))
        return len(records)


class ReportingTransport(KafkaTransport):
    """Its first producer reports the given codes; later ones refuse the culprit alone."""

    def __init__(self, codes: Mapping[int, int]) -> None:
        super().__init__(URL)
        self._first: Mapping[int, int] | None = codes
        self.stored: list[int] = []

    def _opened(self, *, singly: bool = False) -> ProducerSession:
        later = {position: TOO_LARGE if position == CULPRIT else 0 for position in range(5)}
        codes, self._first = later if self._first is None else self._first, None
        session = ReportingSession(codes, self.stored, singly=singly)
        self._open.add(session)
        return session


async def sent(codes: Mapping[int, int]) -> tuple[list[SendResult], list[int]]:
    async with aclosing(ReportingTransport(codes)) as transport, asyncio.timeout(60):
        batch = [outgoing(f"e{n}", KafkaTransport.to(topic=TOPIC)) for n in range(len(codes))]
        return await transport.send(batch), transport.stored


@pytest.mark.parametrize("code", [TOO_LARGE, INVALID])
@pytest.mark.parametrize("follow_up", FOLLOW_UPS)
@pytest.mark.parametrize("order", list(permutations([CULPRIT, 2, 4])))
async def test_the_culprit_is_found_in_any_order_of_the_reports(
    code: int, follow_up: int, order: tuple[int, int, int]
) -> None:
    codes = {CULPRIT: code, 2: follow_up, 4: PURGED}
    results, stored = await sent({0: 0} | {position: codes[position] for position in order} | {3: follow_up})
    assert [type(result) for result in results] == [type(None), PermanentError, *[type(None)] * 3]
    assert stored == [0, 2, 3, 4]


@pytest.mark.parametrize("follow_up", FOLLOW_UPS)
async def test_a_producer_that_the_broker_rejects_without_a_refused_message_is_unavailable(follow_up: int) -> None:
    results, stored = await sent({0: 0, 1: follow_up, 2: follow_up, 3: PURGED, 4: PURGED})
    assert [type(result) for result in results] == [type(None), *[UnavailableError] * 4]
    assert stored == [0]
