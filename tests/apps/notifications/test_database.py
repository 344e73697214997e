"""The database: concurrent writers, times with a time zone, validated URLs."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from sqlalchemy import insert, select
from sqlalchemy.exc import DBAPIError, IntegrityError, StatementError

from apps.notifications.database import migrate, open_engine, open_store
from apps.notifications.domain import Channel
from apps.notifications.tables import account, audience_member, channel_preference, reservation
from pillarbox import ConfigurationError, StoreUnavailableError
from tests.apps.notifications.app_database import AppDatabase

MOMENT = datetime(2026, 3, 29, 1, 30, 0, 123456, tzinfo=timezone(timedelta(hours=2)))
RESERVATION = {"restaurant_id": 1, "guest_name": "Ada", "party_size": 2, "created_at": MOMENT}


def test_a_time_is_returned_in_utc(app: AppDatabase) -> None:
    with app.engine.begin() as connection:
        connection.execute(insert(reservation), {**RESERVATION, "reserved_for": MOMENT})
    [(found,)] = app.rows(select(reservation.c.reserved_for))
    assert found == MOMENT
    assert found.tzinfo is UTC


def test_a_time_without_a_time_zone_is_rejected(app: AppDatabase) -> None:
    with pytest.raises(StatementError, match="has no time zone"), app.engine.begin() as connection:
        connection.execute(insert(reservation), {**RESERVATION, "reserved_for": datetime(2026, 1, 1)})


def test_concurrent_writers_wait_for_each_other(app: AppDatabase) -> None:
    def register(number: int) -> None:
        row = {"agency_id": 1, "name": "Ada", "email": f"{number}@example.org", "created_at": MOMENT}
        with app.engine.begin() as connection:
            connection.execute(select(account.c.id)).all()  # a reader that becomes a writer
            connection.execute(insert(account), row)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(register, range(40)))
    assert app.number("SELECT count(*) FROM account") == 40


def test_a_member_must_be_a_recipient(app: AppDatabase) -> None:
    with pytest.raises(IntegrityError), app.engine.begin() as connection:
        connection.execute(insert(audience_member), {"audience": "ADMIN", "aggregate_id": 1, "user_id": 9})


def test_an_unknown_channel_is_rejected(app: AppDatabase) -> None:
    app.add_users(1)
    row = {"user_id": 1, "event_type": "*", "channel": Channel.EMAIL, "enabled": True}
    # PyMySQL has no class of its own for a check that fails.
    with pytest.raises(DBAPIError, match="ck_channel_preference_channel"), app.engine.begin() as connection:
        connection.execute(insert(channel_preference), row | {"channel": "PIGEON"})


@pytest.mark.parametrize(
    "url", ["", "notifications.db", "mysql://app:secret@db/x", "sqlite://", "sqlite:///:memory:", "postgres://a@b/c"]
)
def test_an_invalid_url_is_rejected_without_its_password(url: str) -> None:
    with pytest.raises(ConfigurationError, match="the database's URL") as refused:
        open_engine(url)
    assert "secret" not in str(refused.value)


def test_a_store_rejects_an_invalid_url() -> None:
    with pytest.raises(ConfigurationError):
        open_store("mysql://app@db/x")


def test_an_unavailable_database_is_an_error_without_its_password(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError) as failed:
        migrate("postgresql://app:secret@127.0.0.1:1/x")
    assert "secret" not in str(failed.value)
    with pytest.raises(StoreUnavailableError, match="unable to open database file"):
        migrate(f"sqlite:///{tmp_path / 'nowhere' / 'x.db'}")
