"""Every kind of connection on every driver, as test parameters.

Those that use SQLAlchemy have its mark: their tests run with both versions.
"""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.integration.record import driver_ways, mariadb_ways, sqlalchemy_ways
from tests.integration.record.way import Way


def _parameters(drivers: Sequence[Way], through_sqlalchemy: Sequence[Way], *database: str) -> list[Any]:
    return [
        *(pytest.param(way, *database) for way in drivers),
        *(pytest.param(way, *database, marks=pytest.mark.sqlalchemy) for way in through_sqlalchemy),
    ]


POSTGRES = _parameters(driver_ways.POSTGRES, sqlalchemy_ways.POSTGRES)
SQLITE = _parameters(driver_ways.SQLITE, sqlalchemy_ways.SQLITE)
MARIADB = _parameters(mariadb_ways.MARIADB, sqlalchemy_ways.MARIADB)
EVERY = [
    *_parameters(driver_ways.POSTGRES, sqlalchemy_ways.POSTGRES, "postgres_url"),
    *_parameters(driver_ways.SQLITE, sqlalchemy_ways.SQLITE, "sqlite_path"),
    *_parameters(mariadb_ways.MARIADB, sqlalchemy_ways.MARIADB, "mariadb_url"),
]
"""Parameters with the fixture of their database."""
