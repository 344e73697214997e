"""The application on every broker: only the URL in PILLARBOX_TRANSPORT changes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import text

from apps.notifications.domain import Audience, Channel
from apps.notifications.producers.orders import create_order
from apps.notifications.topology import GROUP
from pillarbox import Event
from tests.apps.notifications.app_database import AppDatabase, reservation
from tests.apps.notifications.processes import FAST_SETTINGS, Fleet
from tests.servers.kafka import KafkaServer
from tests.servers.ports import free_port
from tests.servers.waiting import wait_until

BOUND = 90.0
WEBHOOK_SETTINGS = {
    "PILLARBOX_TRANSPORTS__BROKER__SECRETS": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "PILLARBOX_TRANSPORTS__BROKER__ALLOW_NETWORKS": "127.0.0.1/32",
}
"""What a relay and listeners on one machine are told besides the URL."""


@pytest.fixture(params=["kafka", "nats", "redis", "webhook"])
def broker_url(request: pytest.FixtureRequest) -> str:
    if request.param == "webhook":
        return f"http://127.0.0.1:{free_port()}/hooks"
    server = request.getfixturevalue(f"{request.param}_server")
    if isinstance(server, KafkaServer):  # whose mock creates no topics by itself
        for audience in Audience:
            for suffix in ("", f".{GROUP}.retry", f".{GROUP}.dlq"):
                server.create_topic(f"{audience.queue}{suffix}")
    url: str = server.url()
    return url


@pytest.fixture
def fleet(tmp_path: Path, postgres_database: str, broker_url: str) -> Iterator[Fleet]:
    variables = WEBHOOK_SETTINGS if broker_url.startswith("http") else {}
    fleet = Fleet(tmp_path, database=postgres_database, broker=broker_url, **variables)
    yield fleet
    fleet.close()


def test_events_become_notifications_and_duplicates_none(postgres_app: AppDatabase, fleet: Fleet) -> None:
    app = postgres_app
    for audience in Audience:
        app.set_defaults(Channel.EMAIL, audience=audience)
    app.add_users(10, 15)
    app.add_users(21, audience=Audience.CUSTOMER, aggregate_id=7)
    app.record(reservation("evt-001"))
    create_order(app.engine, customer_id=7, user_id=21, total_cents=100)
    # The command chooses the settings file by the URL of the broker.
    relay = fleet.start("apps.notifications", "relay", **FAST_SETTINGS, NOTIFICATIONS_METRICS="off")
    listener = fleet.listener()

    def notified(restaurant: int) -> bool:
        return (len(app.notifications(Audience.RESTAURANT)), len(app.notifications(Audience.CUSTOMER))) == (
            restaurant,
            1,
        )

    def settled() -> bool:
        with app.engine.connect() as connection:
            return connection.execute(text("SELECT count(*) FROM outbox_message")).scalar() == 0

    try:
        wait_until(lambda: notified(2), bound=BOUND, what="both audiences are notified")
        wait_until(settled, bound=BOUND, what="the relay has settled both events")
        with app.engine.begin() as connection:  # layer 1 forgets what it sent: the listener receives a duplicate
            connection.execute(text("DELETE FROM outbox_ledger"))
        app.record(reservation("evt-001"))
        app.record(reservation("evt-002"))
        wait_until(lambda: notified(4), bound=BOUND, what="the restaurant is notified of the second event")
    except TimeoutError:
        print(fleet.log_texts())
        raise
    assert sorted({event for event, _, _ in app.notifications(Audience.RESTAURANT)}) == ["evt-001", "evt-002"]
    for process in (listener, relay):
        process.terminate()
        assert process.wait() == 0, process.log_text()


@pytest.mark.parametrize("broker_url", ["webhook"], indirect=True)
def test_a_listener_of_webhooks_refuses_what_is_not_signed_and_what_it_cannot_handle(
    postgres_app: AppDatabase, fleet: Fleet, broker_url: str
) -> None:
    app = postgres_app
    app.set_defaults(Channel.EMAIL, audience=Audience.RESTAURANT)
    app.add_users(10)
    listener = fleet.listener()
    url = f"{broker_url}/{Audience.RESTAURANT.queue}"

    def status(**request: Any) -> int | None:
        try:
            return httpx.post(url, **request).status_code
        except httpx.TransportError:
            return None

    wait_until(lambda: status(content=b"{}") == 400, bound=BOUND, what="a request without a signature is refused")
    assert status(content=bytes(3_000_000)) == 413
    app.record(Event("RESERVATION_REQUESTED", ["no object"], event_id="evt-001", aggregate_type=Audience.RESTAURANT))
    app.record(reservation("evt-002"))
    relay = fleet.start(
        "apps.notifications",
        "relay",
        **FAST_SETTINGS,
        NOTIFICATIONS_METRICS="off",
        PILLARBOX_RELAY__RETRY__MAX_ATTEMPTS="2",
    )

    def dead() -> list[Any]:
        with app.engine.connect() as connection:
            return list(connection.execute(text("SELECT event_id, error FROM outbox_dead_letter")))

    wait_until(lambda: len(dead()) == 1, bound=BOUND, what="the event that cannot be handled is a dead letter")
    [(event_id, error)] = dead()
    assert (event_id, "422" in error) == ("evt-001", True)
    wait_until(lambda: len(app.notifications(Audience.RESTAURANT)) == 1, bound=BOUND, what="the other one arrives")
    for process in (listener, relay):
        process.terminate()
        assert process.wait() == 0, process.log_text()
