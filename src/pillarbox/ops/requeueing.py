"""Bringing dead letters of a broker back to the queues they came from, one by one.

Each is safe in its queue before it is forgotten here: whoever dies in between leaves it in both, and the consumer's
inbox knows the second. What does not move stays where it is, in its order, and is told with the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pillarbox.admin.broker_dead_letters import BrokerLetter, BrokerLetters, LetterInHand
from pillarbox.core.errors import NackedError, RejectedError, SendError, UnavailableError
from pillarbox.ops.broker_queues import DeadQueue, opened
from pillarbox.ops.settings import Settings

SEARCHED = 65_535
"""The most letters of a queue that are searched for single events: what AMQP lets anybody have in hand."""
WINDOW = 100
"""Letters in hand while everything is moved; as many that cannot be moved end it."""

NO_ORIGIN = "nothing on it says which queue it came from: name one with --to"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a person wants moved: letters of these events, or the first so many."""

    event_ids: tuple[str, ...] = ()
    most: int = 0
    to: str | None = None
    """None: each back to where it came from."""
    dry_run: bool = False


@dataclass(slots=True, kw_only=True)
class Tally:
    """What became of it."""

    moved: Counter[str] = field(default_factory=Counter)
    """By the queue they went to, or would go to."""
    stayed: dict[str, list[str]] = field(default_factory=dict)
    """Reason → the ids of their events."""
    found: set[str] = field(default_factory=set)
    """The events that were asked for by their ids, and are there."""
    lost: SendError | None = None
    """Why it ended before its time."""

    def stays(self, letter: BrokerLetter, reason: str) -> None:
        self.stayed.setdefault(reason, []).append(letter.event_id or "(no id)")

    @property
    def done(self) -> int:
        return self.moved.total()

    @property
    def matched(self) -> int:
        return self.done + sum(map(len, self.stayed.values()))


async def requeue(
    settings: Settings, queues: Mapping[DeadQueue, int], wish: Wish, *, on_each: Callable[[], None]
) -> Tally:
    """Do it, queue by queue, of each no more than its depth: what is moved may fail at once and lie here again."""
    tally = Tally()
    try:
        for queue, depth in queues.items():
            most = depth if wish.event_ids else min(depth, wish.most - tally.matched)
            if most:
                async with opened(settings, queue) as letters:
                    await _from(letters, queue.name, most, wish, tally, on_each)
    except (RejectedError, UnavailableError) as error:
        tally.lost = error
    return tally


async def _from(
    letters: BrokerLetters, queue: str, most: int, wish: Wish, tally: Tally, on_each: Callable[[], None]
) -> None:
    window = SEARCHED if wish.event_ids or wish.dry_run else WINDOW
    async with letters.look(queue, most=min(most, SEARCHED) if wish.event_ids else most, window=window) as look:
        if wish.event_ids:
            # All are found before the first is moved: what is not wanted comes and goes, and is never kept.
            found = [hand async for hand in look if hand.letter.event_id in wish.event_ids]
            tally.found.update(hand.letter.event_id or "" for hand in found)
            for hand in found:
                await _move(hand, wish, tally)
                on_each()
        else:
            async for hand in look:
                await _move(hand, wish, tally)
                on_each()


async def _move(hand: LetterInHand, wish: Wish, tally: Tally) -> None:
    letter = hand.letter
    target = wish.to or letter.came_from
    if target is None or target == letter.queue:
        tally.stays(letter, NO_ORIGIN)
        return
    try:
        if not wish.dry_run:
            await hand.move(target)
    except (RejectedError, NackedError) as error:
        tally.stays(letter, f"queue {target!r}: {error}")
    else:
        tally.moved[target] += 1
