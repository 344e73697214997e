"""What was committed and what arrived, recorded without the system under test, and the comparison of both.

Linear in the number of events. Only this comparison decides whether a drill or a fault test passed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(slots=True)
class WriterLedger:
    """What the writers committed: ids per key in commit order, and ids that must never arrive."""

    committed: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    rolled_back: set[str] = field(default_factory=set)

    def commit(self, events: Iterable[tuple[str, str]]) -> None:
        """Record that these (key, event id) pairs are committed."""
        for key, event_id in events:
            self.committed[key].append(event_id)

    def roll_back(self, events: Iterable[tuple[str, str]]) -> None:
        """Record that these are rolled back."""
        self.rolled_back.update(event_id for _, event_id in events)

    @property
    def count(self) -> int:
        return sum(len(ids) for ids in self.committed.values())


class Findings(NamedTuple):
    """What the comparison found; all but `duplicates` must be empty."""

    lost: list[str]
    phantom: list[str]
    out_of_order: list[str]
    """Keys whose first deliveries were not in commit order."""
    stale: list[str]
    """Events that a relay changed or removed while another one owned their lane."""
    duplicates: int
    wrong_effects: list[str] = []  # noqa: RUF012 - never changed
    """Events whose effect was applied never, or more than once, or without a commit."""


SOUND = Findings(lost=[], phantom=[], out_of_order=[], stale=[], duplicates=0)


def check(
    ledger: WriterLedger,
    received: Sequence[str],
    *,
    dead: Iterable[str] = (),
    stale: Iterable[str] = (),
    effects: Mapping[str, int] | None = None,
) -> Findings:
    """Compare what arrived, in order of arrival, with what was committed.

    dead: dead letters. stale: writes of a relay to lanes of another. effects: how often the effect of each event was
    applied; None: there are no effects.
    """
    counts = Counter(received)
    key_of = {event_id: key for key, ids in ledger.committed.items() for event_id in ids}
    first_seen: defaultdict[str, list[str]] = defaultdict(list)
    for event_id in counts:  # In the order of first arrival.
        if event_id in key_of:
            first_seen[key_of[event_id]].append(event_id)
    gone = set(dead)
    return Findings(
        lost=[event_id for event_id in key_of if event_id not in counts and event_id not in gone],
        phantom=[event_id for event_id in counts if event_id not in key_of],
        out_of_order=[
            key
            for key, ids in ledger.committed.items()
            if first_seen[key] != [event_id for event_id in ids if event_id in counts]
        ],
        stale=list(stale),
        duplicates=sum(counts.values()) - len(counts),
        wrong_effects=[] if effects is None else _wrong_effects(key_of, effects, gone),
    )


def _wrong_effects(committed: Mapping[str, str], effects: Mapping[str, int], gone: set[str]) -> list[str]:
    wrong = [event_id for event_id in committed if effects.get(event_id, 0) != 1 and event_id not in gone]
    return wrong + [event_id for event_id in effects if event_id not in committed]
