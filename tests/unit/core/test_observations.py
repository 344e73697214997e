"""Every observer receives all observations; a failing observer affects neither the relay nor the others."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from typing import Any, get_args

import pytest

from pillarbox.core import observations
from pillarbox.core.observations import (
    Announcer,
    BatchDelivered,
    BatchObserver,
    EmptyFetch,
    EventDelivered,
    EventObservation,
    Observation,
    RelayObservation,
    StopRequested,
)
from tests.unit.relay.messages import message

KINDS: tuple[type[Any], ...] = get_args(Observation)
MESSAGES = tuple(message(event_id=event_id) for event_id in ("evt-1", "evt-2", "evt-3"))
BATCH = BatchDelivered(relay="r", destination="orders", messages=MESSAGES, seconds=0.5)
EACH = [EventDelivered(relay="r", message=one, destination="orders", seconds=0.5) for one in MESSAGES]


class ByBatch(BatchObserver):
    """Keeps its observations."""

    def __init__(self) -> None:
        self.reported: list[Observation | BatchDelivered] = []

    def __call__(self, observation: Observation) -> None:
        self.reported.append(observation)

    def delivered(self, batch: BatchDelivered) -> None:
        self.reported.append(batch)


def broken(observation: Observation) -> None:
    raise RuntimeError("this listener is broken")


def test_every_observer_receives_all_observations_in_order() -> None:
    first: list[Observation] = []
    second: list[Observation] = []
    announce = Announcer([first.append, second.append])
    reported: list[Observation] = [StopRequested(relay="r"), EmptyFetch(relay="r")]
    for observation in reported:
        announce(observation)
    assert first == second == reported


def test_a_failing_observer_does_not_affect_the_others() -> None:
    before: list[Observation] = []
    after: list[Observation] = []
    announce = Announcer([before.append, broken, after.append])
    announce(StopRequested(relay="r"))
    assert before == after == [StopRequested(relay="r")]


def test_a_failing_observer_receives_later_observations() -> None:
    calls: list[Observation] = []

    def breaks(observation: Observation) -> None:
        calls.append(observation)
        raise RuntimeError("again")

    announce = Announcer([breaks])
    announce(StopRequested(relay="r"))
    announce(EmptyFetch(relay="r"))
    assert len(calls) == 2


def test_an_exit_request_of_an_observer_is_raised() -> None:
    def interrupted(observation: Observation) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Announcer([interrupted])(StopRequested(relay="r"))


def test_announcing_without_observers_does_nothing() -> None:
    Announcer()(StopRequested(relay="r"))


def test_an_observer_receives_deliveries_by_batch_or_one_by_one() -> None:
    by_batch = ByBatch()
    one_by_one: list[Observation] = []
    announce = Announcer([by_batch, one_by_one.append])
    announce.delivered(BATCH)
    announce(StopRequested(relay="r"))
    assert by_batch.reported == [BATCH, StopRequested(relay="r")]
    assert one_by_one == [*EACH, StopRequested(relay="r")]


def test_an_observer_that_fails_for_an_event_receives_the_rest_of_the_batch() -> None:
    reported: list[Observation] = []

    def breaks_at_the_first(observation: Observation) -> None:
        reported.append(observation)
        if observation == EACH[0]:
            raise RuntimeError("this listener is broken")

    Announcer([breaks_at_the_first]).delivered(BATCH)
    assert reported == EACH


def test_an_observer_that_fails_for_a_batch_does_not_affect_the_others() -> None:
    class Broken(ByBatch):
        def delivered(self, batch: BatchDelivered) -> None:
            raise RuntimeError("this listener is broken")

    after = ByBatch()
    Announcer([Broken(), after]).delivered(BATCH)
    assert after.reported == [BATCH]


def test_every_observation_of_the_module_belongs_to_the_union() -> None:
    apart = {Announcer, BatchObserver, BatchDelivered, RelayObservation, EventObservation}
    defined = {
        value
        for value in vars(observations).values()
        if isinstance(value, type) and value.__module__ == observations.__name__
    }
    assert defined - apart == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_an_observation_is_a_value_with_the_name_of_its_relay(kind: type[Any]) -> None:
    observation = kind(**{field.name: field.name for field in fields(kind)})
    assert observation.relay == "relay"
    assert observation == kind(**{field.name: field.name for field in fields(kind)})
    with pytest.raises(FrozenInstanceError):
        observation.relay = "another"
    with pytest.raises(TypeError):
        kind("positional")
