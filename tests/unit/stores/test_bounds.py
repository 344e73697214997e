"""Time ranges of a read: validated, and absent from the statement if there is none."""

from datetime import UTC, datetime

import pytest

from pillarbox.core.errors import ConfigurationError
from pillarbox.core.fetch import check_range
from pillarbox.statements import Names
from pillarbox.stores.postgres.statements import PostgresStatements
from pillarbox.stores.sqlite.statements import SqliteStatements

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
READS = ("fetch_ready", "fetch_due", "fetch_parked", "fetch_waiting")


def test_a_time_without_time_zone_is_rejected() -> None:
    with pytest.raises(ConfigurationError, match="recorded_after has no time zone"):
        check_range(NOON.replace(tzinfo=None), None)
    with pytest.raises(ConfigurationError, match="recorded_before has no time zone"):
        check_range(None, NOON.replace(tzinfo=None))


def test_an_empty_range_is_rejected() -> None:
    with pytest.raises(ConfigurationError, match="the range is empty"):
        check_range(NOON, NOON)


@pytest.mark.parametrize("name", READS)
def test_a_fetch_without_a_range_has_no_range_condition(name: str) -> None:
    postgres, sqlite = PostgresStatements(Names(schema="public")), SqliteStatements(Names())
    for plain, ranged in (
        (postgres.get(name), postgres.get(name, "in_range")),
        (sqlite.get(name), sqlite.get(name, "in_range")),
    ):
        assert "outside" in ranged
        assert "outside" not in plain
        assert "recorded_at <" not in plain
