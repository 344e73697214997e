"""The API behind a real server on a free port, and clients of it."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread
from typing import Any

import httpx
import pytest
from sqlalchemy import Engine

from apps.notifications.api.app import create_app
from apps.notifications.api.serving import Server
from tests.apps.notifications.delivery.delivery_database import Deliveries
from tests.servers.ports import free_port
from tests.servers.waiting import wait_until

BOUND = 90.0


class Service:
    """A server in a thread."""

    def __init__(self, engine: Engine, **options: Any) -> None:
        self.app = create_app(engine, **options)
        self.url = f"http://127.0.0.1:{(port := free_port())}"
        self._server = Server(self.app, host="127.0.0.1", port=port, log_level="critical")
        self._thread = Thread(target=self._server.run)
        self._thread.start()
        wait_until(lambda: self._server.started, bound=BOUND, what="the server starts")

    @property
    def followers(self) -> int:
        return int(self.app.state.live.followers)

    def client(self, user_id: int | None = 1) -> httpx.Client:
        """A client that sends the header of this user."""
        headers = {} if user_id is None else {"X-User-Id": str(user_id)}
        return httpx.Client(base_url=self.url, headers=headers, timeout=BOUND)

    def request_stop(self) -> None:
        self._server.should_exit = True

    def stop(self) -> None:
        self.request_stop()
        self._thread.join(BOUND)
        assert not self._thread.is_alive()


@pytest.fixture
def deliveries(database: str) -> Iterator[Deliveries]:
    """Users 1 and 2, on either engine."""
    with Deliveries.of(database) as deliveries:
        deliveries.add_users(1, 2)
        yield deliveries


@pytest.fixture
def service(deliveries: Deliveries) -> Iterator[Service]:
    service = Service(deliveries.engine, poll_every=0.05, heartbeat=0.2)
    yield service
    service.stop()


@pytest.fixture
def client(service: Service) -> Iterator[httpx.Client]:
    """User 1."""
    with service.client() as client:
        yield client
