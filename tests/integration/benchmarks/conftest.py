"""The shared servers, as benchmarks use them."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from benchmarks.draining import Servers
from tests.servers.postgres import PostgresServer
from tests.servers.rabbitmq import RabbitMQServer


@pytest.fixture
def servers(postgres_server: PostgresServer, rabbitmq_server: RabbitMQServer) -> Iterator[Servers]:
    with closing(Servers(postgres_server, rabbitmq_server)) as servers:
        yield servers
