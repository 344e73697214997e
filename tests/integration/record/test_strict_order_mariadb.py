"""With strict order on MariaDB, only writers of the same key wait for each other until they commit."""

import asyncio

from pillarbox import Event, Outbox
from pillarbox.testing.waiting import eventually
from tests.integration.mariadb.session import Session
from tests.integration.record.conftest import committed_ids
from tests.integration.record.mariadb_ways import asyncmy_connection

OUTBOX = Outbox(strict_order=True)


def _placed(order: str, event_id: str) -> Event:
    return Event("order.placed", {}, event_id=event_id, aggregate_type="ORDER", aggregate_id=order)


async def test_the_second_writer_of_a_key_waits_for_the_first_to_commit(mariadb_url: str) -> None:
    async with (
        asyncmy_connection(mariadb_url) as first,
        asyncmy_connection(mariadb_url) as second,
        Session(mariadb_url) as sql,
    ):
        await OUTBOX.arecord(first, _placed("42", "first"))
        late = asyncio.create_task(OUTBOX.arecord(second, _placed("42", "second")))
        await eventually(sql.waits_for_a_lock)
        assert not late.done()
        await first.commit()
        await late
        await second.commit()
    assert committed_ids(mariadb_url) == ["first", "second"]


async def test_writers_of_other_keys_do_not_wait(mariadb_url: str) -> None:
    async with asyncmy_connection(mariadb_url) as first, asyncmy_connection(mariadb_url) as second:
        await OUTBOX.arecord(first, _placed("42", "first"))
        async with asyncio.timeout(30):
            await OUTBOX.arecord(second, _placed("43", "second"))
        await second.commit()
        await first.commit()
    assert sorted(committed_ids(mariadb_url)) == ["first", "second"]


async def test_writers_of_several_keys_do_not_deadlock(mariadb_url: str) -> None:
    async def write(name: str, orders: list[str]) -> None:
        async with asyncmy_connection(mariadb_url) as connection:
            await OUTBOX.arecord(connection, *(_placed(order, f"{name}-{order}") for order in orders))
            await connection.commit()

    orders = [str(number) for number in range(20)]
    await asyncio.gather(*(write(f"w{n}", orders if n % 2 else orders[::-1]) for n in range(6)))
    assert len(committed_ids(mariadb_url)) == 120
