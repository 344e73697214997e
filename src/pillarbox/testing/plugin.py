"""The plugin of pytest: fixtures for the tests of a service. Nothing is imported before a fixture is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

try:
    import pytest
except ImportError as missing:
    raise ImportError('the plugin needs pytest: pip install "pillarbox[testing]"') from missing

if TYPE_CHECKING:
    from pillarbox.testing.capture import CapturedOutbox
    from pillarbox.testing.clock import VirtualClock
    from pillarbox.testing.relay import MemoryRelay
    from pillarbox.testing.servers import PostgresServer, RabbitMQServer


@pytest.fixture
def captured_outbox() -> Iterator[CapturedOutbox]:
    """What every outbox of this process records during the test, with assertions such as `assert_recorded`."""
    from pillarbox.testing.capture import CapturedOutbox

    with CapturedOutbox() as captured:
        yield captured


@pytest.fixture
def virtual_clock(captured_outbox: CapturedOutbox) -> VirtualClock:
    """The clock of the captured outbox and of the memory relay: `virtual_clock.advance("1h")`."""
    return captured_outbox.clock


@pytest.fixture
def memory_relay(captured_outbox: CapturedOutbox) -> Callable[..., MemoryRelay]:
    """Makes a relay that delivers what the captured outbox has: `memory_relay(handlers).run()`."""
    from functools import partial

    from pillarbox.testing.relay import MemoryRelay

    return partial(MemoryRelay, captured_outbox)


@pytest.fixture(scope="session")
def pillarbox_postgres() -> Iterator[PostgresServer]:
    """A private PostgreSQL for the session, from the installed programs; `pillarbox_postgres.url()` is its address."""
    from pillarbox.testing.servers import PostgresServer

    with PostgresServer(durable=False) as server:
        yield server


@pytest.fixture
def pillarbox_postgres_url(pillarbox_postgres: PostgresServer) -> Iterator[str]:
    """A database of the test's own in `pillarbox_postgres`, with the tables of the outbox."""
    from pillarbox.testing.servers.databases import outbox_database

    with outbox_database(pillarbox_postgres) as url:
        yield url


@pytest.fixture(scope="session")
def pillarbox_rabbitmq() -> Iterator[RabbitMQServer]:
    """A private RabbitMQ for the session, from the installed programs; `pillarbox_rabbitmq.url()` is its address."""
    from pillarbox.testing.servers import RabbitMQServer

    with RabbitMQServer() as server:
        yield server
