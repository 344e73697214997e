"""A verdict as the observers hear of it."""

from __future__ import annotations

from pillarbox.core.observations import Announcer, EventDelivered, EventDied, EventRetried
from pillarbox.core.outcome import Dead, Delivered, Outcome, Retry
from pillarbox.relay.hand import Item


def tell(announce: Announcer, relay: str, item: Item, outcome: Outcome, *, probe: bool = False) -> None:
    """Announce what becomes of `item`; costs nothing when nobody listens. probe: see `EventRetried`."""
    if not announce.observers:
        return
    message, destination, took = item.message, item.destination, item.took or 0.0
    match outcome:
        case Delivered():
            announce(EventDelivered(relay=relay, message=message, destination=destination, seconds=took))
        case Retry(delay=delay, error=error, charge=charge):
            announce(
                EventRetried(
                    relay=relay,
                    message=message,
                    destination=destination,
                    error=error,
                    attempt=item.attempt,
                    delay=delay,
                    charged=charge,
                    seconds=took,
                    probe=probe,
                )
            )
        case Dead(error=error, block=block):
            announce(
                EventDied(
                    relay=relay,
                    message=message,
                    destination=destination,
                    error=error,
                    attempt=item.attempt,
                    blocks=block,
                    seconds=took,
                )
            )
        case _:
            raise AssertionError(f"{outcome} is nothing to tell")
