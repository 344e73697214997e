"""Outages of brokers and databases while the application runs: it recovers without intervention."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from apps.notifications.database import migrate
from apps.notifications.domain import Audience
from tests.apps.notifications import broker
from tests.apps.notifications.app_database import AppDatabase, reservation
from tests.apps.notifications.faults.conftest import populate, wait_for, wait_for_notifications
from tests.apps.notifications.processes import Fleet, Process
from tests.servers.availability import available
from tests.servers.ports import free_port
from tests.servers.postgres import PostgresServer
from tests.servers.rabbitmq import RabbitMQServer

QUEUE = Audience.RESTAURANT.queue


@pytest.fixture
def private_postgres() -> Iterator[PostgresServer]:
    """A database server that the test may kill."""
    with available(lambda: PostgresServer(durable=False)) as server:
        yield server


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_every_event_arrives_after_a_broker_outage(
    restaurant: AppDatabase, private_rabbitmq: RabbitMQServer, tmp_path: Path, end: str
) -> None:
    fleet = Fleet(tmp_path, database=restaurant.url, broker=private_rabbitmq.url())
    try:
        relay, (listener, pages) = fleet.relay(), _with_pages(fleet)
        restaurant.record(reservation("evt-001"))
        wait_for_notifications(restaurant, fleet, "evt-001")
        getattr(private_rabbitmq, end)()
        restaurant.record(reservation("evt-002"), reservation("evt-003", aggregate_id=5))
        tried = "SELECT count(*) FROM outbox_message WHERE deferrals > 0"
        wait_for(lambda: restaurant.number(tried) >= 1, fleet, "an attempt failed")
        wait_for(lambda: len(_health(pages)["lastSourceErrors"]) == 2, fleet, "both listeners notice, too")
        assert "source failed, retrying" in listener.log_text()
        assert "WARNING pillarbox.relay" in relay.log_text()
        assert restaurant.number("SELECT max(attempts) FROM outbox_message") == 0  # an outage is not their fault
        private_rabbitmq.start()
        wait_for_notifications(restaurant, fleet, "evt-001", "evt-002", "evt-003")
        # Also the one that has had no message since.
        wait_for(lambda: _health(pages)["lastSourceErrors"] == {}, fleet, "both listeners are connected again")
        for queue in (QUEUE, Audience.ADMIN.queue):
            assert re.search(rf"source reconnected after \S+ s: consumer={queue}\b", listener.log_text())
        assert restaurant.number("SELECT count(*) FROM outbox_message") == 0
    finally:
        fleet.close()


def test_every_event_arrives_after_a_database_crash(
    private_postgres: PostgresServer, rabbit: str, tmp_path: Path
) -> None:
    private_postgres.create_database("notifications")
    url = private_postgres.url("notifications")
    migrate(url)
    with AppDatabase.of(url) as app:
        populate(app)
        fleet = Fleet(tmp_path, database=url, broker=rabbit)
        try:
            relay, (listener, pages) = fleet.relay(), _with_pages(fleet)
            app.record(reservation("evt-001"))
            wait_for_notifications(app, fleet, "evt-001")
            private_postgres.kill()
            body = {
                "event_id": "evt-002",
                "event_type": "RESERVATION_REQUESTED",
                "aggregate_type": "RESTAURANT",
                "aggregate_id": 5,
                "payload": {},
            }
            broker.publish(rabbit, Audience.RESTAURANT, body, event_id="evt-002", event_type="RESERVATION_REQUESTED")
            wait_for(lambda: "event_id=evt-002" in listener.log_text(), fleet, "the listener has no transaction for it")
            wait_for(lambda: "WARNING pillarbox.relay" in relay.log_text(), fleet, "the relay notices")
            assert (relay.running, listener.running) == (True, True)
            assert (_health(pages)["status"], _health(pages)["database"]) == ("DOWN", "DOWN")
            private_postgres.start()
            app.engine.dispose()  # its connections are those of the killed server
            app.record(reservation("evt-003"))
            wait_for_notifications(app, fleet, "evt-001", "evt-002", "evt-003")
            wait_for(lambda: _health(pages)["status"] == "UP", fleet, "the listeners are UP again")
        finally:
            fleet.close()


def _with_pages(fleet: Fleet) -> tuple[Process, str]:
    """Two listeners in one process, and where it serves its health."""
    address = f"127.0.0.1:{free_port()}"
    arguments = ("listen", "RESTAURANT", "ADMIN")
    return fleet.start("apps.notifications", *arguments, NOTIFICATIONS_METRICS=address), address


def _health(address: str) -> dict[str, Any]:
    found: dict[str, Any] = httpx.get(f"http://{address}/health", timeout=30).json()
    return found
