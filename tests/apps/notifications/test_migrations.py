"""The tables: revisions and code agree on every engine, and migrations are idempotent."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import Engine, insert, inspect, text
from sqlalchemy.exc import IntegrityError

from apps.notifications.database import MIGRATIONS, migrate, open_engine
from apps.notifications.tables import NOTIFICATIONS, metadata
from tests.apps.notifications.processes import notifications

ROW = {
    "event_type": "RESERVATION_REQUESTED",
    "aggregate_id": 5,
    "title": "",
    "body": "",
    "payload": {},
    "created_at": datetime(2026, 11, 20, 12, tzinfo=UTC),
}


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database without any table."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'empty.db'}"
    url: str = request.getfixturevalue(f"empty_{request.param}_url")
    return url


@pytest.fixture
def engine(empty: str) -> Iterator[Engine]:
    engine = open_engine(empty)
    yield engine
    engine.dispose()


def differences(engine: Engine) -> list[object]:
    """Differences between the tables of the code and of the database, without those of the library."""
    with engine.connect() as connection:
        options = {
            "compare_type": True,
            "include_name": lambda name, kind, _: kind != "table" or name in metadata.tables,
        }
        return list(compare_metadata(MigrationContext.configure(connection, opts=options), metadata))


def tables(engine: Engine) -> set[str]:
    return set(inspect(engine).get_table_names())


def test_the_revisions_create_the_tables_of_the_code(empty: str, engine: Engine) -> None:
    assert len(differences(engine)) >= len(metadata.tables)  # the comparison works
    migrate(empty)
    assert differences(engine) == []


def test_migrating_again_changes_nothing(empty: str, engine: Engine) -> None:
    migrate(empty)
    with engine.begin() as connection:
        connection.execute(text("INSERT INTO recipient (user_id, name, time_zone) VALUES (1, 'Ada', 'UTC')"))
    before = tables(engine)
    migrate(empty)
    assert tables(engine) == before
    with engine.connect() as connection:
        assert connection.execute(text("SELECT name FROM recipient")).scalars().all() == ["Ada"]


def test_several_processes_can_migrate_at_once(empty: str, engine: Engine) -> None:
    with ThreadPoolExecutor(3) as pool:
        done = list(pool.map(lambda _: notifications("migrate", PILLARBOX_STORE=empty), range(3)))
    assert [(one.returncode, one.stdout) for one in done] == [(0, "")] * 3, done
    assert differences(engine) == []


def test_a_migration_that_was_interrupted_on_mariadb_can_be_repeated(empty_mariadb_url: str) -> None:
    migrate(empty_mariadb_url)
    engine = open_engine(empty_mariadb_url)
    with engine.begin() as connection:  # as after a crash in the middle of the first revision
        for statement in (
            "DELETE FROM alembic_version",
            "DROP TABLE notification_delivery",
            "DROP TABLE admin_notification",
            "DROP INDEX ix_agency_user_notification_newest ON agency_user_notification",
        ):
            connection.execute(text(statement))
    migrate(empty_mariadb_url)
    assert differences(engine) == []
    engine.dispose()


def test_both_outboxes_have_their_own_tables(empty: str, engine: Engine) -> None:
    migrate(empty)
    made = tables(engine)
    assert {"outbox_message", "outbox_inbox", "outbox_ledger"} <= made
    assert {"delivery_message", "delivery_inbox", "delivery_ledger"} <= made


def test_a_notification_is_unique_by_event_user_and_channel(empty: str, engine: Engine) -> None:
    migrate(empty)
    for table in NOTIFICATIONS.values():
        [constraint] = inspect(engine).get_unique_constraints(table.name)
        assert constraint["name"] == f"uk_{table.name}_idempotency"
        assert constraint["column_names"] == ["event_id", "user_id", "notification_type"]
        row = ROW | {"event_id": "evt-001", "user_id": 7, "notification_type": "EMAIL"}
        others = [row | {"event_id": "evt-002"}, row | {"user_id": 8}, row | {"notification_type": "PUSH"}]
        with engine.begin() as connection:
            connection.execute(insert(table), [row, *others])
        with pytest.raises(IntegrityError), engine.begin() as connection:
            connection.execute(insert(table), row)


def test_the_revisions_can_be_downgraded_to_an_empty_database(empty: str, engine: Engine) -> None:
    migrate(empty)
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "base")
    assert tables(engine).isdisjoint(metadata.tables)
