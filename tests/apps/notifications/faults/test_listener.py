"""Listeners that crash around their commit: the broker redelivers the message, and each notification exists once."""

import signal
from pathlib import Path

from apps.notifications.domain import Audience
from tests.apps.notifications import broker
from tests.apps.notifications.app_database import AppDatabase, reservation
from tests.apps.notifications.faults.conftest import all_notifications, wait_for, wait_for_notifications
from tests.apps.notifications.processes import Fleet, Process, run_relay

QUEUE = Audience.RESTAURANT.queue
CRASHING = "tests.apps.notifications.faults.crashing_listener"


def crashed_at(fleet: Fleet, point: str, mark: Path) -> Process:
    """Start a listener that kills itself at this point, and wait for its end."""
    listener = fleet.start(CRASHING, point, MARK=str(mark))
    assert listener.wait() == -signal.SIGKILL, listener.log_text()
    assert mark.read_text() == point
    return listener


def test_after_a_crash_between_commit_and_ack_another_listener_skips_the_message(
    restaurant: AppDatabase, fleet: Fleet, rabbit: str, tmp_path: Path
) -> None:
    restaurant.record(reservation("evt-001"))
    assert run_relay(restaurant.url, rabbit).returncode == 0
    crashed_at(fleet, "after-commit", tmp_path / "mark")
    assert (
        restaurant.notifications() == restaurant.delivery_requests() == all_notifications("evt-001")
    )  # it was committed
    wait_for(lambda: broker.ready(rabbit, QUEUE) == 1, fleet, "the broker has the message again")
    another = fleet.listener("RESTAURANT")
    wait_for(lambda: "event_id=evt-001" in another.log_text(), fleet, "another one gets it")
    assert "WARNING pillarbox.consumer.events: event already processed, skipping" in another.log_text()
    another.terminate()
    assert another.wait() == 0
    assert restaurant.notifications() == restaurant.delivery_requests() == all_notifications("evt-001")
    assert broker.ready(rabbit, QUEUE) == 0


def test_after_a_crash_before_commit_another_listener_handles_the_message(
    restaurant: AppDatabase, fleet: Fleet, rabbit: str, tmp_path: Path
) -> None:
    restaurant.record(reservation("evt-001"))
    assert run_relay(restaurant.url, rabbit).returncode == 0
    crashed_at(fleet, "before-commit", tmp_path / "mark")
    assert restaurant.notifications() == restaurant.delivery_requests() == []  # rolled back
    another = fleet.listener("RESTAURANT")
    wait_for_notifications(restaurant, fleet, "evt-001")
    another.terminate()
    assert another.wait() == 0
    assert "skipping" not in another.log_text()
    assert broker.ready(rabbit, QUEUE) == 0
