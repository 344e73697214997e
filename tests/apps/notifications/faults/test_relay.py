"""Relays that crash around the publishing of an event: nothing is lost, and each notification exists once."""

import signal

import pytest
from sqlalchemy import text

from apps.notifications.domain import Audience
from tests.apps.notifications import broker
from tests.apps.notifications.app_database import AppDatabase, reservation
from tests.apps.notifications.faults.conftest import wait_for, wait_for_notifications
from tests.apps.notifications.processes import Fleet

QUEUE = Audience.RESTAURANT.queue


def statuses(app: AppDatabase) -> list[tuple[str, str]]:
    """The status of the event in the outbox, and of its ledger entry."""
    asked = "SELECT e.status, p.status FROM outbox_event e JOIN processed_event p USING (event_id)"
    return [(row[0], row[1]) for row in app.rows(text(asked))]


@pytest.mark.parametrize("point", ["after-confirm", "before-settle"])
def test_after_a_crash_between_publishing_and_settling_the_duplicate_is_skipped(
    restaurant: AppDatabase, fleet: Fleet, rabbit: str, point: str
) -> None:
    restaurant.record(reservation("evt-001"))
    assert fleet.relay(PILLARBOX_FAILPOINT=point).wait() == -signal.SIGKILL
    assert broker.ready(rabbit, QUEUE) == 1  # it was published
    assert restaurant.number("SELECT count(*) FROM outbox_message") == 1  # and not settled
    fleet.relay()
    # The relay cannot know whether the message was sent, so it sends it again with the same id.
    wait_for(lambda: broker.ready(rabbit, QUEUE) == 2, fleet, "the message is published again")
    wait_for(lambda: statuses(restaurant) == [("PUBLISHED", "SUCCESS")], fleet, "the event is settled")
    listener = fleet.listener("RESTAURANT")
    line = "event already processed, skipping"
    wait_for(lambda: line in listener.log_text(), fleet, "the listener skips the duplicate")
    wait_for_notifications(restaurant, fleet, "evt-001")


@pytest.mark.parametrize("point", ["after-fetch", "before-send"])
def test_after_a_crash_before_publishing_the_message_is_sent_once(
    restaurant: AppDatabase, fleet: Fleet, rabbit: str, point: str
) -> None:
    fleet.listener("RESTAURANT")
    wait_for(lambda: broker.has_consumer(rabbit, QUEUE), fleet, "the listener consumes")
    restaurant.record(reservation("evt-001"))
    assert fleet.relay(PILLARBOX_FAILPOINT=point).wait() == -signal.SIGKILL
    assert restaurant.notifications() == []
    assert restaurant.number("SELECT count(*) FROM outbox_message") == 1
    fleet.relay()
    wait_for_notifications(restaurant, fleet, "evt-001")
    assert "skipping" not in fleet.log_texts()


def test_after_a_crash_after_settling_nothing_is_sent_again(restaurant: AppDatabase, fleet: Fleet, rabbit: str) -> None:
    restaurant.record(reservation("evt-001"))
    assert fleet.relay(PILLARBOX_FAILPOINT="after-settle").wait() == -signal.SIGKILL
    assert statuses(restaurant) == [("PUBLISHED", "SUCCESS")]
    restaurant.record(reservation("evt-001"), reservation("evt-002"))  # the first one again
    relay = fleet.relay()
    wait_for(lambda: restaurant.number("SELECT count(*) FROM outbox_message") == 0, fleet, "nothing is pending")
    assert "skipped event, already sent according to the ledger" in relay.log_text()
    fleet.listener("RESTAURANT")
    wait_for_notifications(restaurant, fleet, "evt-001", "evt-002")
    assert "already processed" not in fleet.log_texts()
