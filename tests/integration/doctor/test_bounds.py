"""A check reads a bounded number of rows for any backlog."""

from pillarbox.admin.diagnosis import EXAMINED
from pillarbox.statements import Names
from pillarbox.stores.postgres.statements import PostgresStatements
from tests.databases import Sql
from tests.plans.explain import Explainer

WAITING = 3 * EXAMINED
STATEMENTS = PostgresStatements(Names(prefix="outbox_", schema="public"))


async def test_the_check_for_many_attempts_reads_a_bounded_number_of_rows(sql: Sql, postgres_url: str) -> None:
    await sql.execute(
        "INSERT INTO outbox_message (event_type, payload, attempts, last_error)"
        f" SELECT 'a', '{{}}', 9, 'no' FROM generate_series(1, {WAITING})"
    )
    await sql.execute("VACUUM ANALYZE outbox_message")
    cost = await Explainer(postgres_url).cost(STATEMENTS.get("diagnosis_retried"), EXAMINED, 5)
    assert cost.returned == EXAMINED, cost
    assert cost.rows <= EXAMINED, cost


async def test_the_other_checks_read_no_messages(sql: Sql, postgres_url: str) -> None:
    await sql.execute("INSERT INTO outbox_message (event_type, payload) VALUES ('a', '{}')")
    for name in ("options", "bloat", "settings", "server", "session", "days"):
        cost = await Explainer(postgres_url).cost(STATEMENTS.get(f"diagnosis_{name}"))
        assert cost.everywhere == 0, cost
    for name in ("transactions", "prepared"):
        cost = await Explainer(postgres_url).cost(STATEMENTS.get(f"diagnosis_{name}"), 0.0)
        assert cost.everywhere == 0, cost
