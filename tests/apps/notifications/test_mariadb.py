"""The processes of the application on MariaDB and RabbitMQ, from the command that migrates to the delivery log."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select, text

from apps.notifications.domain import Audience, Channel
from apps.notifications.producers.orders import create_order
from apps.notifications.tables import notification_delivery
from pillarbox.stores.mariadb import MariaDBStore
from tests.apps.notifications.app_database import AppDatabase, combinations, reservation
from tests.apps.notifications.processes import Fleet, notifications
from tests.servers.waiting import wait_until

BOUND = 90.0
CHANNELS = {  # all are needed, and only IN_APP is used
    "NOTIFICATIONS_SMTP": "smtp://127.0.0.1:1",
    "NOTIFICATIONS_FROM": "noreply@example.org",
    "NOTIFICATIONS_PUSH_URL": "http://127.0.0.1:1/push",
    "NOTIFICATIONS_SMS_URL": "http://127.0.0.1:1/sms",
}


@pytest.fixture
def fleet(tmp_path: Path, empty_mariadb_url: str, rabbit: str) -> Iterator[Fleet]:
    migrated = notifications("migrate", PILLARBOX_STORE=empty_mariadb_url)
    assert migrated.returncode == 0, migrated.stderr
    fleet = Fleet(tmp_path, database=empty_mariadb_url, broker=rabbit)
    yield fleet
    fleet.close()


@pytest.fixture
def app(fleet: Fleet, empty_mariadb_url: str) -> Iterator[AppDatabase]:
    with AppDatabase.of(empty_mariadb_url) as app:
        yield app


async def test_every_event_is_delivered_once_although_it_is_sent_and_consumed_again(
    app: AppDatabase, fleet: Fleet
) -> None:
    for audience in Audience:
        app.set_defaults(Channel.IN_APP, audience=audience)
    app.add_users(10, 15)
    app.add_users(21, audience=Audience.CUSTOMER, aggregate_id=7)
    app.record(reservation("evt-001"))
    create_order(app.engine, customer_id=7, user_id=21, total_cents=100)
    relay, listener = fleet.relay(), fleet.listener()
    deliverer = fleet.start("apps.notifications", "deliver", NOTIFICATIONS_METRICS="off", **CHANNELS)

    def delivered(number: int) -> bool:
        assert deliverer.running, deliverer.log_text()
        return len(app.rows(select(notification_delivery.c.id))) >= number

    try:
        wait_until(lambda: delivered(3), bound=BOUND, what="both audiences are notified")
        app.record(reservation("evt-001"))  # skipped by the relay: it is in the ledger
        wait_until(lambda: app.number("SELECT count(*) FROM outbox_message") == 0, bound=BOUND, what="it is skipped")
        with app.engine.begin() as connection:
            connection.execute(text("DELETE FROM outbox_ledger"))
        app.record(reservation("evt-001"))  # sent again, and skipped by the listener: it is in the inbox
        app.record(reservation("evt-002"))
        wait_until(lambda: delivered(5), bound=BOUND, what="the restaurant is notified of the second event")
    except TimeoutError:
        print(fleet.log_texts())
        raise
    for process in (deliverer, listener, relay):
        process.terminate()
        assert process.wait() == 0, process.log_text()
    assert app.notifications() == combinations(["evt-001", "evt-002"], [10, 15], ["IN_APP"])
    assert len(app.notifications(Audience.CUSTOMER)) == 1
    assert "already processed, skipping" in listener.log_text()
    deliveries = app.rows(select(notification_delivery.c.audience, notification_delivery.c.notification_id))
    assert len(deliveries) == len(set(deliveries)) == 5
    store = MariaDBStore(app.url)
    assert (await store.admin.inspection.overview()).dead == 0
    await store.aclose()
