"""Stages on the shared servers, and separate servers for tests that stop or kill one."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.faults import handling
from tests.faults.stage import Stage
from tests.servers import forkserver
from tests.servers.availability import available
from tests.servers.rabbitmq import RabbitMQServer

MakeStage = Callable[..., Stage]


@pytest.fixture(scope="session", autouse=True)
def fork_server() -> Iterator[None]:
    """Relays are forks of a process that has imported their libraries. It ends last."""
    yield
    forkserver.SERVER.close()


@pytest.fixture
def make_stage(tmp_path: Path) -> Iterator[MakeStage]:
    """Creates stages, and ends their relays at the end of the test."""
    made: list[Stage] = []

    def make(*, store: str, transport: str, **options: Any) -> Stage:
        event_type = f"faults-{uuid.uuid4().hex[:12]}"
        made.append(Stage(tmp_path, store=store, transport=transport, event_type=event_type, **options))
        return made[-1]

    yield make
    for stage in made:
        stage.close()


@pytest.fixture
def make_handled(make_stage: MakeStage, tmp_path: Path) -> MakeStage:
    """Makes stages whose relays call a handler that does what an event says."""

    def receive(_: str) -> list[str]:
        return (tmp_path / handling.NOTES).read_text().split()

    return partial(make_stage, transport="handlers:tests.faults.handling:odd", receive=receive)


@pytest.fixture
def stage(make_stage: MakeStage, postgres_url: str, rabbitmq_server: RabbitMQServer) -> Stage:
    """A stage on the shared servers, which stay healthy."""
    return make_stage(store=postgres_url, transport=rabbitmq_server.url())


@pytest.fixture(params=["postgres", "mariadb"])
def any_stage(request: pytest.FixtureRequest, make_stage: MakeStage, rabbitmq_server: RabbitMQServer) -> Stage:
    """The same on each database."""
    return make_stage(store=request.getfixturevalue(f"{request.param}_url"), transport=rabbitmq_server.url())


@pytest.fixture(scope="package")
def victim() -> Iterator[RabbitMQServer]:
    """A broker that tests may stop and kill; it is running and healthy at the start of each test."""
    with available(RabbitMQServer) as server:
        yield server


@pytest.fixture
def stage_with_broker(make_stage: MakeStage, postgres_url: str, victim: RabbitMQServer) -> Stage:
    """A stage on a broker that may be stopped and killed."""
    return make_stage(store=postgres_url, transport=victim.url())
