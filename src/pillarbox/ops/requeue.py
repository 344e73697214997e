"""Move dead letters of a broker back to the queues they came from, one by one.

Invariant: the broker has confirmed a message in its queue before it is deleted from the dead-letter queue. After a
crash in between it is in both, and the consumer's inbox detects the duplicate. A message that cannot be moved stays in
its position and is reported with the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pillarbox.admin.broker_dead_letters import BrokerDeadLetter, BrokerDeadLetters, ReceivedDeadLetter
from pillarbox.core.errors import NackedError, RejectedError, SendError, UnavailableError
from pillarbox.ops.broker_queues import DeadQueue, opened
from pillarbox.ops.settings import Settings

SEARCHED = 65_535
"""Dead letters of a queue that are searched for event ids: the most that AMQP allows in flight."""
PREFETCH = 100
"""Dead letters in flight while all are moved; as many that cannot be moved end the run."""

NO_ORIGIN = "its headers do not name the queue it came from: name one with --to"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequeuePlan:
    """What to move: the dead letters of these events, or the first `most`."""

    event_ids: tuple[str, ...] = ()
    most: int = 0
    to: str | None = None
    """The target queue; None: the queue each came from."""
    dry_run: bool = False


@dataclass(slots=True, kw_only=True)
class RequeueResult:
    """What was moved and what was skipped."""

    moved: Counter[str] = field(default_factory=Counter)
    """Target queue → number of messages."""
    skipped: dict[str, list[str]] = field(default_factory=dict)
    """Reason → event ids."""
    found: set[str] = field(default_factory=set)
    """Those of the requested event ids that were found."""
    error: SendError | None = None
    """Why the run ended early."""

    def skip(self, dead_letter: BrokerDeadLetter, reason: str) -> None:
        self.skipped.setdefault(reason, []).append(dead_letter.event_id or "(no id)")

    @property
    def done(self) -> int:
        return self.moved.total()

    @property
    def matched(self) -> int:
        return self.done + sum(map(len, self.skipped.values()))


async def requeue(
    settings: Settings, queues: Mapping[DeadQueue, int], plan: RequeuePlan, *, on_each: Callable[[], None]
) -> RequeueResult:
    """Move dead letters, queue by queue, of each at most its depth: a moved message may fail and return at once."""
    result = RequeueResult()
    try:
        for queue, depth in queues.items():
            most = depth if plan.event_ids else min(depth, plan.most - result.matched)
            if most:
                async with opened(settings, queue) as dead_letters:
                    await _requeue_from(dead_letters, queue.name, most, plan, result, on_each)
    except (RejectedError, UnavailableError) as error:
        result.error = error
    return result


async def _requeue_from(
    dead_letters: BrokerDeadLetters,
    queue: str,
    most: int,
    plan: RequeuePlan,
    result: RequeueResult,
    on_each: Callable[[], None],
) -> None:
    prefetch = SEARCHED if plan.event_ids or plan.dry_run else PREFETCH
    async with dead_letters.receive(
        queue, limit=min(most, SEARCHED) if plan.event_ids else most, prefetch=prefetch
    ) as received:
        if plan.event_ids:
            # Find all before the first is moved, so that a moved message that fails again is not found twice.
            found = [one async for one in received if one.dead_letter.event_id in plan.event_ids]
            result.found.update(one.dead_letter.event_id or "" for one in found)
            for one in found:
                await _move(one, plan, result)
                on_each()
        else:
            async for one in received:
                await _move(one, plan, result)
                on_each()


async def _move(received: ReceivedDeadLetter, plan: RequeuePlan, result: RequeueResult) -> None:
    dead_letter = received.dead_letter
    target = plan.to or dead_letter.original_queue
    if target is None or target == dead_letter.queue:
        result.skip(dead_letter, NO_ORIGIN)
        return
    try:
        if not plan.dry_run:
            await received.move(target)
    except (RejectedError, NackedError) as error:
        result.skip(dead_letter, f"queue {target!r}: {error}")
    else:
        result.moved[target] += 1
