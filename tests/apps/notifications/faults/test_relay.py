"""Relays that are killed around the publishing of an event: nothing is lost, and nobody is told twice."""

import signal

import pytest
from sqlalchemy import text

from apps.notifications.words import Audience
from tests.apps.notifications import broker
from tests.apps.notifications.faults.conftest import wait_for, wait_until_told
from tests.apps.notifications.processes import Fleet
from tests.apps.notifications.town import Town, reservation

QUEUE = Audience.RESTAURANT.queue


def statuses(town: Town) -> list[tuple[str, str]]:
    """Of the event in the outbox, and of its entry in the ledger."""
    asked = "SELECT e.status, p.status FROM outbox_event e JOIN processed_event p USING (event_id)"
    return [(row[0], row[1]) for row in town.rows(text(asked))]


@pytest.mark.parametrize("point", ["after-confirm", "before-settle"])
def test_killed_between_publishing_and_marking_the_message_goes_out_again_and_has_its_effect_once(
    restaurant: Town, fleet: Fleet, rabbit: str, point: str
) -> None:
    restaurant.record(reservation("evt-001"))
    assert fleet.relay(PILLARBOX_FAILPOINT=point).wait() == -signal.SIGKILL
    assert broker.ready(rabbit, QUEUE) == 1  # it was published
    assert restaurant.number("SELECT count(*) FROM outbox_message") == 1  # and is not marked
    fleet.relay()
    # Whether it went out cannot be known, so it goes out once more with the same id, rather than never.
    wait_for(lambda: broker.ready(rabbit, QUEUE) == 2, fleet, "the message is there once more")
    wait_for(lambda: statuses(restaurant) == [("PUBLISHED", "SUCCESS")], fleet, "the event is marked")
    listener = fleet.listener("RESTAURANT")
    words = "event already processed, skipping"
    wait_for(lambda: words in listener.story(), fleet, "the listener skips the repeat")
    wait_until_told(restaurant, fleet, "evt-001")


@pytest.mark.parametrize("point", ["after-read", "before-send"])
def test_killed_before_publishing_the_message_goes_out_once(
    restaurant: Town, fleet: Fleet, rabbit: str, point: str
) -> None:
    fleet.listener("RESTAURANT")
    wait_for(lambda: broker.is_listened_to(rabbit, QUEUE), fleet, "the listener listens")
    restaurant.record(reservation("evt-001"))
    assert fleet.relay(PILLARBOX_FAILPOINT=point).wait() == -signal.SIGKILL
    assert restaurant.told() == []
    assert restaurant.number("SELECT count(*) FROM outbox_message") == 1
    fleet.relay()
    wait_until_told(restaurant, fleet, "evt-001")
    assert "skipping" not in fleet.stories()


def test_killed_after_marking_nothing_goes_out_again(restaurant: Town, fleet: Fleet, rabbit: str) -> None:
    restaurant.record(reservation("evt-001"))
    assert fleet.relay(PILLARBOX_FAILPOINT="after-settle").wait() == -signal.SIGKILL
    assert statuses(restaurant) == [("PUBLISHED", "SUCCESS")]
    restaurant.record(reservation("evt-001"), reservation("evt-002"))  # the first one once more
    relay = fleet.relay()
    wait_for(lambda: restaurant.number("SELECT count(*) FROM outbox_message") == 0, fleet, "nothing waits")
    assert "skipped event, already sent according to the ledger" in relay.story()
    fleet.listener("RESTAURANT")
    wait_until_told(restaurant, fleet, "evt-001", "evt-002")
    assert "already processed" not in fleet.stories()
