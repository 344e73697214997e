"""Late results on a real database: after a lane was lost and regained, and during operator requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, closing
from typing import Any

import asyncpg
import psycopg
import pytest

from pillarbox import Event, FixedDelay, Outbox, Relay, RelayConfig
from pillarbox.core.errors import RejectedError
from pillarbox.core.observations import EventRetried, Observation
from pillarbox.core.transport import Address, Outgoing, Pace, SendResult
from pillarbox.stores.postgres import PostgresStore
from pillarbox.testing.lookup import dead_letters
from pillarbox.testing.waiting import eventually
from pillarbox.transports.memory import MemoryAddress
from tests.databases import Sql

SOON = FixedDelay(delay="100ms", max_attempts="unlimited")
CONFIG = RelayConfig(heartbeat_interval="100ms", poll_interval="50ms")
BOUND = 60.0


class Answered:
    """A transport whose results the test controls."""

    pace = Pace(batch_size=1, concurrency=16, has_own_timeout=True)
    address_type = MemoryAddress

    def __init__(self) -> None:
        self.sends: list[tuple[str, bytes, asyncio.Future[SendResult]]] = []
        self.accepted: list[str] = []

    def defaults(self, event_type: str) -> Mapping[str, Address]:
        return {event_type: MemoryAddress(name=event_type)}

    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        [one] = batch
        answer: asyncio.Future[SendResult] = asyncio.get_running_loop().create_future()
        self.sends.append((one.message.event_id, one.body, answer))
        result = await answer
        if result is None:
            self.accepted.append(one.message.event_id)
        return [result]

    async def sent(self, event_id: str, times: int = 1) -> asyncio.Future[SendResult]:
        """The pending result of an event, after it was sent so many times."""

        async def often_enough() -> bool:
            return sum(name == event_id for name, _, _ in self.sends) >= times

        await eventually(often_enough, within=BOUND)
        return [answer for name, _, answer in self.sends if name == event_id][times - 1]

    async def accept_all(self, count: int) -> None:
        """Accept everything until that many messages were accepted."""

        async def enough() -> bool:
            for _, _, answer in self.sends:
                if not answer.done():
                    answer.set_result(None)
            return len(self.accepted) >= count

        await eventually(enough, within=BOUND)

    async def ping(self) -> None:
        pass

    async def aclose(self) -> None:
        pass


@pytest.fixture
async def sql(postgres_url: str) -> AsyncIterator[Sql]:
    connection = await asyncpg.connect(postgres_url)
    yield connection
    await connection.close()


def record(url: str, *events: Event) -> None:
    with closing(psycopg.connect(url)) as connection, connection.transaction():
        Outbox().record(connection, *events)


async def test_a_result_from_before_a_lane_was_lost_is_discarded(postgres_url: str, sql: Sql) -> None:
    transport, observed = Answered(), list[Observation]()
    observers = [observed.append]
    async with aclosing(PostgresStore(postgres_url)) as store:
        record(postgres_url, *(Event("a", {}, event_id=name, key="k") for name in ("m1", "m2", "m3")))
        async with Relay(store=store, transports={"t": transport}, config=CONFIG, retry=SOON, observers=observers):
            stale = await transport.sent("m1")
            # Like another relay that considers this one crashed: it notices, joins again and regains its lanes.
            await sql.execute("DELETE FROM outbox_relay")
            (await transport.sent("m1", times=2)).set_result(None)
            second = await transport.sent("m2")
            stale.set_result(RejectedError("late"))
            # The late result has been processed once a later event is delivered.
            record(postgres_url, Event("b", {}, event_id="x"))
            (await transport.sent("x")).set_result(None)

            async def delivered() -> bool:
                return bool(await sql.fetchval("SELECT count(*) FROM outbox_history WHERE event_id = 'x'"))

            await eventually(delivered, within=BOUND)
            assert [name for name, _, _ in transport.sends if name == "m3"] == []
            second.set_result(RejectedError("not now"))
            await transport.accept_all(4)
    assert [name for name in dict.fromkeys(transport.accepted) if name != "x"] == ["m1", "m2", "m3"]
    # It is neither announced nor counted as a failure.
    assert [one.error for one in observed if isinstance(one, EventRetried)] == ["RejectedError: not now"]


async def test_a_dead_letter_edited_during_its_send_is_sent_as_edited(postgres_url: str, sql: Sql) -> None:
    transport = Answered()

    async def value(query: str) -> Any:
        return await sql.fetchval(query)

    async with aclosing(PostgresStore(postgres_url)) as store:
        record(postgres_url, Event("a", {"old": 1}, event_id="m1", key="k"))
        async with Relay(store=store, transports={"t": transport}, config=CONFIG, retry=SOON):
            (await transport.sent("m1")).set_result(RejectedError("not now"))
            first = await transport.sent("m1", times=2)
            [request] = await store.admin.requests.add("dead_letter", [("m1", "a")])
            # The relay has seen the request, because it has applied a later one.
            [after] = await store.admin.requests.add("discard", [("unknown", "")])

            async def met() -> bool:
                return bool(await value(f"SELECT done_at FROM outbox_request WHERE request_id = {after}"))

            await eventually(met, within=BOUND)
            assert await value(f"SELECT done_at FROM outbox_request WHERE request_id = {request}") is None
            first.set_result(RejectedError("not now"))

            async def dead() -> bool:
                return bool(await dead_letters(store))

            await eventually(dead, within=BOUND)
            [dead_letter] = await dead_letters(store)
            assert await store.admin.dead_letters.edit(dead_letter.id, payload=b'{"new":1}')
            (await transport.sent("m1", times=3)).set_result(None)

            async def delivered() -> bool:
                return bool(await value("SELECT count(*) FROM outbox_history"))

            await eventually(delivered, within=BOUND)
    assert [body for _, body, _ in transport.sends] == [b'{"old":1}', b'{"old":1}', b'{"new":1}']
