"""Every handle on every driver, so that one test speaks for all of them."""

from tests.integration.record import driver_ways, sqlalchemy_ways

POSTGRES = [*driver_ways.POSTGRES, *sqlalchemy_ways.POSTGRES]
SQLITE = [*driver_ways.SQLITE, *sqlalchemy_ways.SQLITE]
