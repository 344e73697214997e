"""Duplicates, existing notifications, retries and invalid events in one process, with their log lines."""

import json

import pytest
from sqlalchemy import insert, text

from apps.notifications import embedded
from apps.notifications.database import open_store
from apps.notifications.domain import Audience, Channel
from apps.notifications.listeners import LISTENERS
from apps.notifications.tables import restaurant_user_notification
from pillarbox import Event, FixedDelay, Handlers, Relay
from tests.apps.notifications.app_database import AppDatabase, combinations, event_for, reservation
from tests.apps.notifications.in_process import NIGHT, relay_all

EMAIL, PUSH = Channel.EMAIL, Channel.PUSH


async def test_an_event_recorded_twice_is_handled_once_and_logged(
    app: AppDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    app.add_users(1)
    app.set_defaults(EMAIL)
    with caplog.at_level("INFO", logger="pillarbox"):
        for _ in range(2):
            app.record(reservation("evt-001"))
            await relay_all(app)
    assert app.notifications() == app.delivery_requests() == [("evt-001", 1, "EMAIL")]
    [line] = [record for record in caplog.records if "already sent according to the ledger" in record.message]
    assert (line.levelname, "event_id=evt-001" in line.message) == ("INFO", True)


async def test_a_processed_event_is_skipped_with_a_warning(app: AppDatabase, caplog: pytest.LogCaptureFixture) -> None:
    app.add_users(1)
    app.set_defaults(EMAIL)
    app.record(reservation("evt-001"))
    await relay_all(app)
    with app.engine.begin() as connection:
        connection.execute(text("DELETE FROM outbox_ledger"))  # as after a crash of the relay before settling
    app.record(reservation("evt-001"))
    await relay_all(app)
    assert app.notifications() == app.delivery_requests() == [("evt-001", 1, "EMAIL")]
    [line] = [record for record in caplog.records if "already processed, skipping" in record.message]
    assert (line.levelname, "event_id=evt-001" in line.message) == ("WARNING", True)


async def test_an_existing_notification_does_not_affect_the_others(
    app: AppDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    users = range(1, 6)
    app.add_users(*users)
    app.set_defaults(EMAIL, PUSH)
    existing = {
        "event_id": "evt-001",
        "user_id": 4,
        "notification_type": PUSH,
        "event_type": "RESERVATION_REQUESTED",
        "aggregate_id": 5,
        "title": "as it was",
        "body": "as it was",
        "payload": {},
        "created_at": NIGHT,
    }
    with app.engine.begin() as connection:
        connection.execute(insert(restaurant_user_notification), existing)
    app.record(reservation("evt-001"))
    with caplog.at_level("DEBUG", logger="notifications"):
        await relay_all(app)
    assert app.notifications() == combinations(["evt-001"], users, [EMAIL, PUSH])
    assert app.delivery_requests() == [one for one in app.notifications() if one != ("evt-001", 4, "PUSH")]
    assert app.number("SELECT count(*) FROM restaurant_user_notification WHERE title = 'as it was'") == 1
    assert app.number("SELECT count(*) FROM outbox_inbox") == 1
    lines = [record for record in caplog.records if "already exists" in record.message]
    assert [(line.levelname, line.message) for line in lines] == [
        ("DEBUG", "notification already exists, skipping: event_id=evt-001 user_id=4 channel=PUSH")
    ]


async def test_an_unknown_single_recipient_is_an_error_and_retried(
    app: AppDatabase, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "RETRY", FixedDelay(delay="1h"))  # longer than the test, also on a busy machine
    app.set_defaults(EMAIL)
    single = Event(
        "ORDER_CREATED",
        {"user_id": 99},
        event_id="e",
        aggregate_type="RESTAURANT",
        aggregate_id="5",
        headers={"recipientType": "SINGLE"},
    )
    app.record(single)
    await relay_all(app)
    [(attempts, error)] = app.rows(text("SELECT attempts, last_error FROM outbox_message"))
    assert attempts == 1
    assert "event e is for user 99, who is not among the recipients" in error
    [line] = [record for record in caplog.records if record.levelname == "ERROR"]
    assert "event_id=e " in line.message
    assert app.number("SELECT count(*) FROM outbox_inbox") == 0


@pytest.mark.parametrize("aggregate_id", ["five", None])
async def test_an_invalid_event_is_dead_lettered_at_once(app: AppDatabase, aggregate_id: str | None) -> None:
    app.record(Event("E", {}, event_id="e", aggregate_type="RESTAURANT", aggregate_id=aggregate_id, key="k"))
    await relay_all(app)
    [error] = app.dead_letter_errors()
    assert "message e is not a notification: aggregate_id" in error


async def test_half_of_a_surrogate_pair_is_dead_lettered_at_once(app: AppDatabase) -> None:
    await relay_guest(app, "A\ud800")
    [error] = app.dead_letter_errors()
    assert "the payload of event e cannot be stored" in error


async def test_text_that_postgresql_cannot_store_is_dead_lettered_at_once(postgres_app: AppDatabase) -> None:
    await relay_guest(postgres_app, "A\x00")
    [error] = postgres_app.dead_letter_errors()
    assert "the payload of event e cannot be stored" in error


async def relay_guest(app: AppDatabase, name: str) -> None:
    """Relay the reservation of a guest with this name."""
    app.add_users(1)
    app.set_defaults(EMAIL)
    app.record(
        Event(
            "RESERVATION_REQUESTED",
            json.dumps({"guest_name": name, "party_size": 2, "reserved_for": "noon"}).encode(),
            content_type="application/json",
            event_id="e",
            aggregate_type="RESTAURANT",
            aggregate_id="5",
        )
    )
    await relay_all(app)


async def test_an_unknown_time_zone_does_not_affect_other_users(
    app: AppDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    app.add_users(1, time_zone="Mars/Olympus")
    app.add_users(2)
    app.set_defaults(EMAIL)
    app.record(reservation("e"))
    await relay_all(app)
    assert app.notifications() == combinations(["e"], [1, 2], [EMAIL])
    assert "user 1 has the unknown time zone 'Mars/Olympus'" in caplog.text


async def test_a_message_for_another_audience_is_dead_lettered(app: AppDatabase) -> None:
    handlers = Handlers()
    listener = LISTENERS[Audience.ADMIN](app.engine)
    handlers.add(listener.consumer)
    store = open_store(app.url)
    relay = Relay(store=store, transports={"handlers": handlers})
    app.record(event_for(Audience.AGENCY, "e"))
    await relay.run_until_empty()
    await store.aclose()
    [error] = app.dead_letter_errors()
    assert "message e is for AGENCY and came to ADMIN; correct its route" in error
