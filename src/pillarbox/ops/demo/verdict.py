"""The judgement: what the shop committed against what receivers wrote down. The relay is not asked."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pillarbox.ops.demo.ledger import Entry


class Step(NamedTuple):
    """A committed step of an order, and the event that announces it."""

    order: str
    event_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What became of the events at one receiver; each once, however often it came."""

    receiver: str
    handled: int
    refused: int
    """Refused for good by the receiver itself: dead letters."""
    failed: int
    """Calls that failed and came again."""
    lost: tuple[str, ...]
    """Committed, and neither handled nor refused."""
    phantom: tuple[str, ...]
    """Handled or refused, and never committed."""
    disordered: tuple[str, ...]
    """Orders whose steps did not come in the order of their commits."""
    repeats: int
    """Came again although they had been handled or refused."""

    @property
    def ok(self) -> bool:
        return not (self.lost or self.phantom or self.disordered)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """All accounts, and the two relations between them."""

    committed: int
    accounts: tuple[Account, ...]
    dead_letters: int
    most_repeats: int
    """What relays can have had in hand when they lost their lanes."""

    @property
    def repeats(self) -> int:
        return sum(account.repeats for account in self.accounts)

    @property
    def failures(self) -> tuple[str, ...]:
        """Everything that is not as it should be, for people."""
        found = []
        for account in self.accounts:
            for events, what in ((account.lost, "never reached"), (account.phantom, "never happened, yet reached")):
                if events:
                    found.append(f"{_counted(len(events), 'event')} {what} {account.receiver}, such as {events[0]}")
            if orders := account.disordered:
                found.append(
                    f"{_counted(len(orders), 'order')} reached {account.receiver} out of order: {orders[0]}, …"
                )
        refused = sum(account.refused for account in self.accounts)
        if refused != self.dead_letters:
            found.append(f"{_counted(refused, 'event')} refused for good, but {self.dead_letters} in the dead letters")
        if self.repeats > self.most_repeats:
            found.append(f"{_counted(self.repeats, 'repeat')}, where at most {self.most_repeats} can be explained")
        return tuple(found)

    @property
    def ok(self) -> bool:
        return not self.failures


def judge(
    committed: Sequence[Step],
    entries: Sequence[Entry],
    *,
    receivers: Sequence[str],
    dead_letters: int,
    most_repeats: int,
) -> Verdict:
    """Compare, receiver by receiver. Linear in the number of events."""
    lines: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        lines[entry.receiver].append(entry)
    return Verdict(
        committed=len(committed),
        accounts=tuple(_account(receiver, committed, lines[receiver]) for receiver in receivers),
        dead_letters=dead_letters,
        most_repeats=most_repeats,
    )


def _account(receiver: str, committed: Sequence[Step], lines: Sequence[Entry]) -> Account:
    arrived = [line for line in lines if line.what != "failed"]
    counts = Counter(line.event_id for line in arrived)
    order_of = {step.event_id: step.order for step in committed}
    came: defaultdict[str, list[str]] = defaultdict(list)
    for event_id in counts:  # a Counter keeps the order in which it first met things
        if event_id in order_of:
            came[order_of[event_id]].append(event_id)
    due: defaultdict[str, list[str]] = defaultdict(list)
    for step in committed:
        if step.event_id in counts:
            due[step.order].append(step.event_id)
    refused = {line.event_id for line in arrived if line.what == "refused"}
    return Account(
        receiver=receiver,
        handled=len({line.event_id for line in arrived if line.what == "handled"}),
        refused=len(refused),
        failed=len(lines) - len(arrived),
        lost=tuple(event_id for event_id in order_of if event_id not in counts),
        phantom=tuple(event_id for event_id in counts if event_id not in order_of),
        disordered=tuple(order for order in due if came[order] != due[order]),
        repeats=sum(counts.values()) - len(counts),
    )


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
