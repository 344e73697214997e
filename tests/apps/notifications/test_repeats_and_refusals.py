"""What comes twice, exists already, fails or can never be understood, in one process: told once, with its log line."""

import json

import pytest
from sqlalchemy import insert, text

from apps.notifications import embedded
from apps.notifications.database import open_store
from apps.notifications.listeners import LISTENERS
from apps.notifications.tables import restaurant_user_notification
from apps.notifications.words import Audience, Channel
from pillarbox import Event, FixedDelay, Handlers, Relay
from tests.apps.notifications.in_process import NIGHT, carry
from tests.apps.notifications.town import Town, event_for, everybody, reservation

EMAIL, PUSH = Channel.EMAIL, Channel.PUSH


async def test_an_event_recorded_twice_is_handled_once_and_told(town: Town, caplog: pytest.LogCaptureFixture) -> None:
    town.settle(1)
    town.offer(EMAIL)
    with caplog.at_level("INFO", logger="pillarbox"):
        for _ in range(2):
            town.record(reservation("evt-001"))
            await carry(town)
    assert town.told() == town.asked_for() == [("evt-001", 1, "EMAIL")]
    [line] = [record for record in caplog.records if "already sent according to the ledger" in record.message]
    assert (line.levelname, "event_id=evt-001" in line.message) == ("INFO", True)


async def test_an_event_that_comes_again_though_it_was_handled_is_skipped_with_a_warning(
    town: Town, caplog: pytest.LogCaptureFixture
) -> None:
    town.settle(1)
    town.offer(EMAIL)
    town.record(reservation("evt-001"))
    await carry(town)
    with town.engine.begin() as connection:
        connection.execute(text("DELETE FROM processed_event"))  # as if the relay had died before its settlement
    town.record(reservation("evt-001"))
    await carry(town)
    assert town.told() == town.asked_for() == [("evt-001", 1, "EMAIL")]
    [line] = [record for record in caplog.records if "already processed, skipping" in record.message]
    assert (line.levelname, "event_id=evt-001" in line.message) == ("WARNING", True)


async def test_one_of_ten_that_exists_already_does_not_hinder_the_others(
    town: Town, caplog: pytest.LogCaptureFixture
) -> None:
    users = range(1, 6)
    town.settle(*users)
    town.offer(EMAIL, PUSH)
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
    with town.engine.begin() as connection:
        connection.execute(insert(restaurant_user_notification), existing)
    town.record(reservation("evt-001"))
    with caplog.at_level("DEBUG", logger="notifications"):
        await carry(town)
    assert town.told() == everybody(["evt-001"], users, [EMAIL, PUSH])
    assert town.asked_for() == [told for told in town.told() if told != ("evt-001", 4, "PUSH")]
    assert town.number("SELECT count(*) FROM restaurant_user_notification WHERE title = 'as it was'") == 1
    assert town.number("SELECT count(*) FROM outbox_inbox") == 1
    lines = [record for record in caplog.records if "already exists" in record.message]
    assert [(line.levelname, line.message) for line in lines] == [
        ("DEBUG", "notification already exists, skipping: event_id=evt-001 user_id=4 channel=PUSH")
    ]


async def test_a_single_recipient_whom_nobody_knows_is_an_error_and_tried_again(
    town: Town, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "RETRY", FixedDelay(wait="1h"))  # on a busy machine a second would be over
    town.offer(EMAIL)
    single = Event(
        "ORDER_CREATED",
        {"user_id": 99},
        event_id="e",
        aggregate_type="RESTAURANT",
        aggregate_id="5",
        headers={"recipientType": "SINGLE"},
    )
    town.record(single)
    await carry(town)
    [(attempts, error)] = town.rows(text("SELECT attempts, last_error FROM outbox_message"))
    assert attempts == 1
    assert "event e is for user 99, who is not among the recipients" in error
    [line] = [record for record in caplog.records if record.levelname == "ERROR"]
    assert "event_id=e " in line.message
    assert town.number("SELECT count(*) FROM outbox_inbox") == 0


@pytest.mark.parametrize("aggregate_id", ["five", None])
async def test_an_event_that_can_never_be_understood_is_a_dead_letter_at_once(
    town: Town, aggregate_id: str | None
) -> None:
    town.record(Event("E", {}, event_id="e", aggregate_type="RESTAURANT", aggregate_id=aggregate_id, key="k"))
    await carry(town)
    [error] = town.dead()
    assert "message e is no notification: aggregate_id" in error


@pytest.mark.parametrize("name", ["A\x00", "A\ud800"])
async def test_text_that_can_never_be_stored_is_a_dead_letter_at_once(postgres_town: Town, name: str) -> None:
    postgres_town.settle(1)
    postgres_town.offer(EMAIL)
    postgres_town.record(
        Event(
            "RESERVATION_REQUESTED",
            json.dumps({"guest_name": name, "party_size": 2, "reserved_for": "noon"}).encode(),
            content_type="application/json",
            event_id="e",
            aggregate_type="RESTAURANT",
            aggregate_id="5",
        )
    )
    await carry(postgres_town)
    [error] = postgres_town.dead()
    assert "the payload of event e cannot be stored" in error


async def test_a_time_zone_that_nobody_knows_keeps_nobody_else_from_being_told(
    town: Town, caplog: pytest.LogCaptureFixture
) -> None:
    town.settle(1, time_zone="Mars/Olympus")
    town.settle(2)
    town.offer(EMAIL)
    town.record(reservation("e"))
    await carry(town)
    assert town.told() == everybody(["e"], [1, 2], [EMAIL])
    assert "user 1 lives in the time zone 'Mars/Olympus'" in caplog.text


async def test_a_message_that_strayed_to_another_listener_is_a_dead_letter(town: Town) -> None:
    handlers = Handlers()
    listener = LISTENERS[Audience.ADMIN](town.engine)
    handlers.add(listener.consumer)
    store = open_store(town.url)
    relay = Relay(store=store, transports={"handlers": handlers})
    town.record(event_for(Audience.AGENCY, "e"))
    await relay.run_until_empty()
    await store.aclose()
    [error] = town.dead()
    assert "message e is for AGENCY and came to ADMIN; correct its route" in error
