"""Replays with overlapping transactions: order within a key, and concurrent resumes."""

import asyncio

from pillarbox.admin.replay import Replay
from pillarbox.core.event import REPLAY_OF, Event
from pillarbox.core.outcome import DELIVERED
from pillarbox.ops import replay_runs
from pillarbox.record import Outbox
from pillarbox.stores.postgres import PostgresStore
from pillarbox.testing.conformance.lane_owner import Owner
from tests.databases import Sql


async def test_a_replay_keeps_the_order_of_the_key_not_of_recording_times(
    store: PostgresStore, sql: Sql, other_session: Sql
) -> None:
    """A transaction that began first and recorded last has the earlier time and the later sequence number."""
    outbox = Outbox()
    slow = sql.transaction()
    await slow.start()
    await sql.execute("SELECT FROM outbox_message")
    async with other_session.transaction():
        await outbox.arecord(other_session, Event("t", {}, event_id="first", key="k"))
    await outbox.arecord(sql, Event("t", {}, event_id="second", key="k"))
    await slow.commit()
    owner = await Owner.of(store)
    first, second = await owner.ready()
    assert first.recorded_at > second.recorded_at
    await owner.settle(DELIVERED, first, second, to="x")
    await replay_runs.run(store, Replay(), by="")
    assert [copy.headers[REPLAY_OF] for copy in sorted(await owner.ready())] == ["first", "second"]


async def test_of_two_concurrent_resumes_one_continues(
    store: PostgresStore, other_store: PostgresStore, sql: Sql
) -> None:
    async with sql.transaction():
        await Outbox().arecord(sql, *(Event("t", {}, event_id=f"{n}", key="k") for n in range(50)))
    owner = await Owner.of(store)
    await owner.settle(DELIVERED, *await owner.ready(), to="x")
    progress = await store.admin.replays.begin(Replay())
    rows, _ = await store.admin.replays.chosen(progress.plan, limit=100, after=progress.after)
    end = rows[-1].position
    moved = await asyncio.gather(
        *(
            one.admin.replays.copy(progress, rows, after=end, done=True)
            for one in (store, other_store, store, other_store)
        )
    )
    assert [progress.copied for progress in moved if progress is not None] == [50]
    assert len(await owner.ready()) == 50


async def test_a_long_key_is_kept(store: PostgresStore, sql: Sql) -> None:
    """The history has only the key: it is derived from aggregate type and id, or stored."""
    long = "x" * 250
    async with sql.transaction():
        await Outbox().arecord(
            sql,
            Event("t", {}, event_id="a", aggregate_type=long, aggregate_id=long),
            Event("t", {}, event_id="b", aggregate_type=long, aggregate_id=long, key="own"),
        )
    owner = await Owner.of(store)
    await owner.settle(DELIVERED, *await owner.ready(), to="x")
    await replay_runs.run(store, Replay(), by="")
    assert {copy.headers[REPLAY_OF]: copy.key for copy in await owner.ready()} == {"a": f"{long}:{long}", "b": "own"}
