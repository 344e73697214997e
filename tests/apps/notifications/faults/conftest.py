"""A database with two recipients at one restaurant, each with two channels, and their expected notifications."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from apps.notifications.domain import Audience, Channel
from tests.apps.notifications.app_database import AppDatabase, Notified, combinations
from tests.apps.notifications.processes import Fleet
from tests.servers.waiting import wait_until

BOUND = 90.0
USERS = (10, 15)
CHANNELS = (Channel.EMAIL, Channel.PUSH)


def populate(app: AppDatabase) -> None:
    app.add_users(*USERS)
    app.set_defaults(*CHANNELS)


def all_notifications(*event_ids: str) -> list[Notified]:
    """The expected notifications of these events, each once."""
    return combinations(event_ids, USERS, CHANNELS)


@pytest.fixture
def restaurant(postgres_app: AppDatabase) -> AppDatabase:
    populate(postgres_app)
    return postgres_app


def wait_for(condition: Callable[[], bool], fleet: Fleet, what: str, *, bound: float = BOUND) -> None:
    """Wait for a condition; on a timeout, print the logs of the processes."""
    try:
        wait_until(condition, bound=bound, what=what)
    except TimeoutError:
        print(fleet.log_texts())
        raise


def wait_for_notifications(app: AppDatabase, fleet: Fleet, *event_ids: str) -> None:
    """Wait for exactly these notifications and their delivery requests."""
    wanted = all_notifications(*event_ids)
    wait_for(lambda: len(app.notifications(Audience.RESTAURANT)) >= len(wanted), fleet, "all notifications exist")
    assert app.notifications(Audience.RESTAURANT) == wanted
    assert app.delivery_requests() == wanted
