"""Listeners that are killed around their commit: the message comes again, and every notification is there once."""

import signal
from pathlib import Path

from apps.notifications.words import Audience
from tests.apps.notifications import broker
from tests.apps.notifications.faults.conftest import all_told, wait_for, wait_until_told
from tests.apps.notifications.processes import Fleet, Process, carry
from tests.apps.notifications.town import Town, reservation

QUEUE = Audience.RESTAURANT.queue
DYING = "tests.apps.notifications.faults.dying_listener"


def dead_at(fleet: Fleet, point: str, mark: Path) -> Process:
    """A listener that died there; it says so itself, and the system confirms how."""
    listener = fleet.start(DYING, point, MARK=str(mark))
    assert listener.wait() == -signal.SIGKILL, listener.story()
    assert mark.read_text() == point
    return listener


def test_killed_after_its_commit_and_before_its_ack_another_one_skips_the_message(
    restaurant: Town, fleet: Fleet, rabbit: str, tmp_path: Path
) -> None:
    restaurant.record(reservation("evt-001"))
    assert carry(restaurant.url, rabbit).returncode == 0
    dead_at(fleet, "after-commit", tmp_path / "mark")
    assert restaurant.told() == restaurant.asked_for() == all_told("evt-001")  # it was committed
    wait_for(lambda: broker.ready(rabbit, QUEUE) == 1, fleet, "the broker has the message again")
    another = fleet.listener("RESTAURANT")
    wait_for(lambda: "event_id=evt-001" in another.story(), fleet, "another one gets it")
    assert "WARNING pillarbox.consumer.events: event already processed, skipping" in another.story()
    another.terminate()
    assert another.wait() == 0
    assert restaurant.told() == restaurant.asked_for() == all_told("evt-001")
    assert broker.ready(rabbit, QUEUE) == 0


def test_killed_before_its_commit_another_one_does_all_of_it(
    restaurant: Town, fleet: Fleet, rabbit: str, tmp_path: Path
) -> None:
    restaurant.record(reservation("evt-001"))
    assert carry(restaurant.url, rabbit).returncode == 0
    dead_at(fleet, "before-commit", tmp_path / "mark")
    assert restaurant.told() == restaurant.asked_for() == []  # nothing was
    another = fleet.listener("RESTAURANT")
    wait_until_told(restaurant, fleet, "evt-001")
    another.terminate()
    assert another.wait() == 0
    assert "skipping" not in another.story()
    assert broker.ready(rabbit, QUEUE) == 0
