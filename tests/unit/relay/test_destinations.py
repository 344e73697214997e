"""A gate whose whole share hangs: other relays see it shut, and not even a probe goes."""

from pillarbox.relay.breaker import UNLIMITED, CircuitBreaker
from pillarbox.relay.destinations import NEVER, Gate
from pillarbox.relay.routing import Destination, Place
from tests.unit.relay.messages import Fixed
from tests.unit.relay.places import QueueAddress, Queues

LATER = 3600.0


def gate(*, full: bool) -> Gate:
    destination = Destination(QueueAddress(queue="q"))
    return Gate(Place("q", destination, "queues", Queues()), CircuitBreaker(), full=full)


def test_one_that_is_open_stays_shut_while_its_share_is_used_up() -> None:
    for full, state, allowed, wait in ((False, "half-open", 1, 0.0), (True, "open", 0, NEVER)):
        hanging = gate(full=full)
        hanging.breaker.unavailable("no answer", 0.0, Fixed(0.5))
        assert (hanging.state(LATER), hanging.may_send(LATER), hanging.wait(LATER)) == (state, allowed, wait)


def test_one_that_is_closed_is_only_busy() -> None:
    busy = gate(full=True)
    assert (busy.state(LATER), busy.may_send(LATER)) == ("closed", UNLIMITED)
