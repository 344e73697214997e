"""Compares the committed orders with the ledger of the receivers, independently of the relay."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pillarbox.core.text import plural
from pillarbox.ops.demo.ledger import DemoLedgerEntry


class OrderStep(NamedTuple):
    """A committed state of an order, and the id of its event."""

    order: str
    event_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverResult:
    """The result of one receiver. Each event counts once, however often it was delivered."""

    receiver: str
    handled: int
    rejected: int
    """Permanently rejected by the receiver: dead letters."""
    failed: int
    """Calls that failed and were retried."""
    lost: tuple[str, ...]
    """Committed, but neither handled nor rejected."""
    phantom: tuple[str, ...]
    """Handled or rejected, but never committed."""
    out_of_order: tuple[str, ...]
    """Orders whose events did not arrive in commit order."""
    duplicates: int
    """Deliveries of events that had been handled or rejected before."""

    @property
    def ok(self) -> bool:
        return not (self.lost or self.phantom or self.out_of_order)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The results of all receivers, compared with the dead letters and the limit of duplicates."""

    committed: int
    results: tuple[ReceiverResult, ...]
    dead_letters: int
    max_duplicates: int
    """Messages that relays can have had in flight when they lost their lanes."""

    @property
    def duplicates(self) -> int:
        return sum(result.duplicates for result in self.results)

    @property
    def failures(self) -> tuple[str, ...]:
        """One sentence per violated guarantee."""
        found: list[str] = []
        for result in self.results:
            name = result.receiver
            if events := result.lost:
                found.append(f"{plural(len(events), 'event')} lost: never reached {name}, for example {events[0]}")
            if events := result.phantom:
                found.append(
                    f"{plural(len(events), 'phantom event')}: never committed, but reached {name}, "
                    f"for example {events[0]}"
                )
            if orders := result.out_of_order:
                found.append(f"{plural(len(orders), 'order')} reached {name} out of order, for example {orders[0]}")
        rejected = sum(result.rejected for result in self.results)
        if rejected != self.dead_letters:
            found.append(f"{plural(rejected, 'event')} rejected, but {plural(self.dead_letters, 'dead letter')}")
        if self.duplicates > self.max_duplicates:
            found.append(f"{plural(self.duplicates, 'duplicate')}, but at most {self.max_duplicates:,} possible")
        return tuple(found)

    @property
    def ok(self) -> bool:
        return not self.failures


def verify(
    committed: Sequence[OrderStep],
    entries: Sequence[DemoLedgerEntry],
    *,
    receivers: Sequence[str],
    dead_letters: int,
    max_duplicates: int,
) -> Verification:
    """Compare the orders with the entries of each receiver, in linear time."""
    received: defaultdict[str, list[DemoLedgerEntry]] = defaultdict(list)
    for entry in entries:
        received[entry.receiver].append(entry)
    return Verification(
        committed=len(committed),
        results=tuple(_result(receiver, committed, received[receiver]) for receiver in receivers),
        dead_letters=dead_letters,
        max_duplicates=max_duplicates,
    )


def _result(receiver: str, committed: Sequence[OrderStep], received: Sequence[DemoLedgerEntry]) -> ReceiverResult:
    arrived = [entry for entry in received if entry.status != "failed"]
    counts = Counter(entry.event_id for entry in arrived)
    order_of = {step.event_id: step.order for step in committed}
    arrived_by_order: defaultdict[str, list[str]] = defaultdict(list)
    for event_id in counts:  # in the order of first arrival
        if event_id in order_of:
            arrived_by_order[order_of[event_id]].append(event_id)
    expected_by_order: defaultdict[str, list[str]] = defaultdict(list)
    for step in committed:
        if step.event_id in counts:
            expected_by_order[step.order].append(step.event_id)
    rejected = {entry.event_id for entry in arrived if entry.status == "rejected"}
    return ReceiverResult(
        receiver=receiver,
        handled=len({entry.event_id for entry in arrived if entry.status == "handled"}),
        rejected=len(rejected),
        failed=len(received) - len(arrived),
        lost=tuple(event_id for event_id in order_of if event_id not in counts),
        phantom=tuple(event_id for event_id in counts if event_id not in order_of),
        out_of_order=tuple(order for order in expected_by_order if arrived_by_order[order] != expected_by_order[order]),
        duplicates=sum(counts.values()) - len(counts),
    )
