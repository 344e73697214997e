"""A verdict as the observers hear of it."""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox.core.observations import Announcer, BatchDelivered, EventDied, EventRetried
from pillarbox.core.outcome import Dead, Delivered, Outcome, Retry
from pillarbox.relay.in_flight import Item


def tell_delivered(announce: Announcer, relay: str, items: Sequence[Item]) -> None:
    """Announce that `items`, sent together to one destination, were delivered; costs nothing when nobody listens."""
    if announce.observers and items:
        announce.delivered(
            BatchDelivered(
                relay=relay,
                destination=items[0].destination,
                messages=tuple([item.message for item in items]),
                seconds=items[0].took or 0.0,
            )
        )


def tell(announce: Announcer, relay: str, item: Item, outcome: Outcome, *, probe: bool = False) -> None:
    """Announce what becomes of `item`; costs nothing when nobody listens. probe: see `EventRetried`."""
    if not announce.observers:
        return
    message, destination, took = item.message, item.destination, item.took or 0.0
    match outcome:
        case Delivered():
            tell_delivered(announce, relay, [item])
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
