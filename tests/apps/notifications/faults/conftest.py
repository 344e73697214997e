"""A town with two recipients at one restaurant, each told by two channels, and the list of what they shall be told."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from apps.notifications.words import Audience, Channel
from tests.apps.notifications.processes import Fleet
from tests.apps.notifications.town import Told, Town, everybody
from tests.servers.waiting import wait_until

BOUND = 90.0
USERS = (10, 15)
CHANNELS = (Channel.EMAIL, Channel.PUSH)


def populate(town: Town) -> None:
    town.settle(*USERS)
    town.offer(*CHANNELS)


def all_told(*event_ids: str) -> list[Told]:
    """What these events mean, each notification once."""
    return everybody(event_ids, USERS, CHANNELS)


@pytest.fixture
def restaurant(postgres_town: Town) -> Town:
    populate(postgres_town)
    return postgres_town


def wait_for(fact: Callable[[], bool], fleet: Fleet, what: str, *, bound: float = BOUND) -> None:
    """Wait for a fact, and show what the processes said if it does not come."""
    try:
        wait_until(fact, bound=bound, what=what)
    except TimeoutError:
        print(fleet.stories())
        raise


def wait_until_told(town: Town, fleet: Fleet, *event_ids: str) -> None:
    """Wait for exactly these notifications, and as many requests for their delivery."""
    wanted = all_told(*event_ids)
    wait_for(lambda: len(town.told(Audience.RESTAURANT)) >= len(wanted), fleet, "everybody is told")
    assert town.told(Audience.RESTAURANT) == wanted
    assert town.asked_for() == wanted
