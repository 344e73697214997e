"""A shared broker that tests may disturb, because starting one takes 4 seconds of CPU time."""

from collections.abc import Iterator

import pytest

from tests.servers.availability import available
from tests.servers.rabbitmq import RabbitMQServer


@pytest.fixture(scope="session")
def victim() -> Iterator[RabbitMQServer]:
    """A broker for tests that fill, block, restart or kill it and leave it running."""
    with available(RabbitMQServer) as server:
        yield server
