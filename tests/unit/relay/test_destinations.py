"""A destination whose whole share hangs is reported as unavailable, and no probe is sent."""

from pillarbox.relay.destination_state import NEVER, UNLIMITED, CircuitBreaker, DestinationState
from pillarbox.relay.routing import Destination, DestinationEndpoint
from tests.unit.relay.endpoints import QueueAddress, Queues
from tests.unit.relay.messages import Fixed

LATER = 3600.0


def state(*, full: bool) -> DestinationState:
    destination = Destination(QueueAddress(queue="q"))
    return DestinationState(DestinationEndpoint("q", destination, "queues", Queues()), CircuitBreaker(), full=full)


def test_an_open_breaker_sends_no_probe_while_its_share_is_used_up() -> None:
    for full, shown, allowed, wait in ((False, "half-open", 1, 0.0), (True, "open", 0, NEVER)):
        hanging = state(full=full)
        hanging.breaker.unavailable("no answer", 0.0, Fixed(0.5))
        assert (hanging.state(LATER), hanging.may_send(LATER), hanging.wait(LATER)) == (shown, allowed, wait)


def test_a_closed_breaker_with_a_full_share_is_busy() -> None:
    busy = state(full=True)
    assert (busy.state(LATER), busy.may_send(LATER)) == ("closed", UNLIMITED)
