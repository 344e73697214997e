"""A relay announces each change of an operator's override once."""

import random

from pillarbox.core.clock import SystemClock
from pillarbox.core.observations import Announcer, DestinationOverridden, Observation
from pillarbox.core.store import EVERYWHERE, Override
from pillarbox.relay.config import BreakerConfig
from pillarbox.relay.destinations import DestinationStates

NOTHING = Override("orders", paused=False, breaker=None, rate_limit=None, last_error=None)


class Fixture:
    """DestinationStates, and their observations since the last read."""

    def __init__(self) -> None:
        self._said: list[Observation] = []
        self.destinations = DestinationStates(
            relay="r",
            clock=SystemClock(),
            rng=random.Random(1),
            announce=Announcer([self._said.append]),
            breaker=BreakerConfig(),
        )

    def override(self, *wanted: Override) -> list[tuple[str, bool, str | None, float | None]]:
        self._said.clear()
        self.destinations.override(wanted, relays=1)
        return [
            (one.destination, one.paused, one.breaker, one.rate_limit)
            for one in self._said
            if isinstance(one, DestinationOverridden)
        ]


def test_every_change_is_announced_once() -> None:
    reported = Fixture()
    paused = NOTHING._replace(paused=True)
    assert reported.override(paused) == [("orders", True, None, None)]
    assert reported.override(paused) == []
    assert reported.override(paused._replace(breaker="open", rate_limit=5.0)) == [("orders", True, "open", 5.0)]
    assert reported.override() == [("orders", False, None, None)]


def test_an_error_of_the_destination_is_not_an_override() -> None:
    assert Fixture().override(NOTHING._replace(last_error="refused")) == []


def test_a_paused_destination_is_known_before_its_first_message() -> None:
    reported = Fixture()
    reported.override(NOTHING._replace(paused=True), NOTHING._replace(destination=EVERYWHERE, paused=True))
    assert reported.destinations.paused() == {"orders", EVERYWHERE}
