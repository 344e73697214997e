"""Two relays apply parts of the same bulk actions concurrently, without lost updates and deadlocks."""

import asyncio

from pillarbox.stores.postgres import PostgresStore
from pillarbox.testing.conformance.lane_owner import Owner
from pillarbox.testing.waiting import eventually
from tests.databases import Sql
from tests.integration.postgres.test_fencing_race import waits_for_a_lock

GROW = "UPDATE outbox_audit SET count = count + 1 WHERE audit_id = $1"


async def test_relays_update_shared_bulk_actions_in_one_order(
    store: PostgresStore, sql: Sql, other_session: Sql
) -> None:
    owner = await Owner.of(store)
    await sql.execute(
        "INSERT INTO outbox_message (event_id, event_type, payload) VALUES ('a', 't', ''), ('b', 't', '')"
    )
    first, second = [await store.admin.audit.add("discard", count=0, detail={"remaining": 2}) for _ in range(2)]
    await store.admin.requests.add("discard", [("a", "")], bulk_action=second)
    await store.admin.requests.add("discard", [("b", "")], bulk_action=first)
    # Like another relay that came first.
    other = other_session.transaction()
    await other.start()
    await other_session.execute(GROW, first)
    ours = asyncio.create_task(owner.execute_requests())
    await eventually(lambda: waits_for_a_lock(sql))
    await other_session.execute(GROW, second)
    await other.commit()
    assert await ours == 2
    assert {entry.count for entry in (await store.admin.audit.list()).entries} == {2}
