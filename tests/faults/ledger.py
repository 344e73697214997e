"""What was committed and what arrived, known without asking the system under test, and the judgement on the two.

Linear in the number of events. A run is judged by this and by nothing else.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(slots=True)
class Ledger:
    """The writers' own notes: ids per key in the order of their commits, and ids that must never be seen."""

    committed: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    rolled_back: set[str] = field(default_factory=set)

    def commit(self, events: Iterable[tuple[str, str]]) -> None:
        """These (key, event id) pairs are in the database."""
        for key, event_id in events:
            self.committed[key].append(event_id)

    def roll_back(self, events: Iterable[tuple[str, str]]) -> None:
        """These are not."""
        self.rolled_back.update(event_id for _, event_id in events)

    @property
    def count(self) -> int:
        return sum(len(ids) for ids in self.committed.values())


class Findings(NamedTuple):
    """What a checker found; all but `duplicates` must be empty."""

    lost: list[str]
    phantom: list[str]
    out_of_order: list[str]
    """Keys whose first deliveries did not follow the commits."""
    stale: list[str]
    """Events that a relay changed or removed while another one owned their lane."""
    duplicates: int


SOUND = Findings(lost=[], phantom=[], out_of_order=[], stale=[], duplicates=0)


def judge(ledger: Ledger, received: Sequence[str], *, dead: Iterable[str] = (), stale: Iterable[str] = ()) -> Findings:
    """Compare what arrived, in the order of arrival, with what was committed.

    `dead` was given up on, `stale` is what the witness in the database saw.
    """
    counts = Counter(received)
    key_of = {event_id: key for key, ids in ledger.committed.items() for event_id in ids}
    first_seen: defaultdict[str, list[str]] = defaultdict(list)
    for event_id in counts:  # a Counter keeps the order in which it first met things
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
    )
