"""The life cycle of a message: after every operation, the store has exactly what the model has."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from pillarbox.admin.requests import Action
from pillarbox.core.errors import DuplicateEventError
from pillarbox.core.event import Event
from pillarbox.core.message import Held, KeyQueue, Message
from pillarbox.core.outcome import DELIVERED, Dead, Retry
from pillarbox.core.store import Retention
from pillarbox.testing.conformance.lane_owner import Owner
from pillarbox.testing.lookup import dead_letters, find_event
from pillarbox.testing.machines.machine import StoreMachine
from pillarbox.testing.machines.model import Identity, Model, PendingMessage, QueueName, Time

EVENTS = ["e1", "e2", "e3", "e4", "e5"]
KEYS = [None, "k", "j"]
DESTINATIONS = ["", "x", "y"]
HOUR = 3600.0
TIMES: dict[Time | None, datetime | None] = {
    None: None,
    "past": datetime(2001, 1, 1, tzinfo=UTC),
    "future": datetime(2101, 1, 1, tzinfo=UTC),
}
_TIMES_TO_DRAW: list[Time | None] = [None, None, "past", "future"]
DELAYS: dict[Time, float] = {"past": 0.0, "future": HOUR}

times = st.sampled_from(sorted(DELAYS))
picks = st.integers(0, 30)
"""Selects one of the messages that can be fetched, modulo their number."""


class _RolledBack(Exception):
    pass


@st.composite
def events(draw: st.DrawFn) -> Event:
    event_id = draw(st.sampled_from(EVENTS))
    return Event(
        "thing.happened",
        draw(st.sampled_from([b"one", b"two"])),
        event_id=event_id,
        # An id always has the same key: a duplicate of an event is the same event.
        key=KEYS[EVENTS.index(event_id) % len(KEYS)],
        destination=draw(st.sampled_from(DESTINATIONS)),
        available_at=TIMES[draw(st.sampled_from(_TIMES_TO_DRAW))],
    )


class MessageLifecycle(StoreMachine):
    """One relay owns all lanes and executes random operations, one after another."""

    async def prepare(self) -> None:
        self.model = Model()
        self.owner = await Owner.of(self.store)
        self.stale: Owner | None = None

    @rule(event=events())
    def record(self, event: Event) -> None:
        if (event.event_id, event.destination) in self.model.pending:
            with pytest.raises(DuplicateEventError):
                self.run(self.harness.commit(event))
        else:
            self.run(self.harness.commit(event))
            self._recorded(event)

    @rule(event=events())
    def record_and_roll_back(self, event: Event) -> None:
        async def record_and_raise() -> None:
            async with self.harness.transaction() as transaction:
                await self.harness.record(transaction, event)
                raise _RolledBack

        with pytest.raises((_RolledBack, DuplicateEventError)):
            self.run(record_and_raise())

    @rule(kept=events(), undone=events())
    def record_around_a_savepoint(self, kept: Event, undone: Event) -> None:
        taken = set(self.model.pending)
        if {(e.event_id, e.destination) for e in (kept, undone)} & taken or kept.event_id == undone.event_id:
            return

        async def record() -> None:
            async with self.harness.transaction() as transaction:
                try:
                    async with self.harness.savepoint(transaction):
                        await self.harness.record(transaction, undone)
                        raise _RolledBack
                except _RolledBack:
                    await self.harness.record(transaction, kept)

        self.run(record())
        self._recorded(kept)

    @rule(pick=picks, to=st.sampled_from(["x", "y"]))
    def deliver(self, pick: int, to: str) -> None:
        if message := self._pick(pick):
            destination = message.destination or to
            self.run(self.owner.settle(DELIVERED, message, to=destination))
            self.model.deliver(message.identity, destination)

    @rule()
    def deliver_everything_that_is_ready(self) -> None:
        messages = [m for m in self.run(self.owner.ready()) if not m.must_wait]
        self.run(self.owner.settle(DELIVERED, *messages))
        for message in messages:
            self.model.deliver(message.identity, message.destination)

    @rule(pick=picks, to=st.sampled_from(DESTINATIONS), time=times, counted=st.booleans())
    def retry(self, pick: int, to: str, time: Time, counted: bool) -> None:
        if message := self._pick(pick):
            destination = message.destination or to
            outcome = Retry(delay=DELAYS[time], error="no", counted=counted)
            self.run(self.owner.settle(outcome, message, to=destination))
            self.model.retry(message.identity, destination, time=time, counted=counted)

    @rule(pick=picks, to=st.sampled_from(DESTINATIONS), block=st.booleans())
    def dead_letter_or_block(self, pick: int, to: str, block: bool) -> None:
        if message := self._pick(pick):
            destination = message.destination or to
            self.run(self.owner.settle(Dead(error="no", block=block), message, to=destination))
            change = self.model.block if block else self.model.dead_letter
            change(message.identity, destination)

    @rule(pick=picks, to=st.sampled_from(DESTINATIONS), held=st.sampled_from([Held.WAITING, Held.PARKED]))
    def hold(self, pick: int, to: str, held: Held) -> None:
        message = self._pick(pick)
        # A message without a key waits for no other.
        if message and (held is Held.PARKED or message.key is not None):
            destination = message.destination or to
            self.run(self.owner.hold(held, message, to=destination))
            self.model.hold(message.identity, destination, held.value)

    @rule(pick=picks, destinations=st.sampled_from([("x", "y"), ("x",), ("y", "z")]))
    def split(self, pick: int, destinations: tuple[str, ...]) -> None:
        message = self._pick(pick)
        if message and message.destination == "":
            self.run(self.owner.split(message, *destinations))
            self.model.split(message.identity, destinations)

    @rule(pick=picks, counted=st.booleans())
    def note(self, pick: int, counted: bool) -> None:
        if message := self._pick(pick):
            self.run(self.owner.count_attempt("no", message, counted=counted))
            self.model.note(message.identity, counted=counted)

    @rule(
        pick=picks,
        action=st.sampled_from(["retry", "discard", "reschedule"]),
        time=times,
        known=st.booleans(),
    )
    def request(self, pick: int, action: Action, time: Time, known: bool) -> None:
        """Requests also reach messages that cannot be fetched: blocked ones, and those that are not due."""
        pending = sorted(self.model.pending)
        identity = pending[pick % len(pending)] if known and pending else ("unknown", "")
        time = "past" if action == "retry" else time
        self.run(self.store.admin.requests.add(action, [identity], delay=DELAYS[time]))
        assert self.run(self.owner.execute_requests()) == 1
        self.model.request(action, identity, time)

    @rule(pick=picks)
    def retry_dead_letter(self, pick: int) -> None:
        if listed := self.run(dead_letters(self.store)):
            number = pick % len(listed)
            expected = self.model.dead[len(listed) - 1 - number]
            retried = self.run(self.store.admin.dead_letters.retry([listed[number].id]))
            assert retried == self.model.retry_dead_letter(expected)

    @rule(pick=picks)
    def discard_dead_letter(self, pick: int) -> None:
        if listed := self.run(dead_letters(self.store)):
            number = pick % len(listed)
            assert self.run(self.store.admin.dead_letters.discard([listed[number].id])) == 1
            del self.model.dead[len(listed) - 1 - number]

    @rule(history=st.booleans())
    def prune(self, history: bool) -> None:
        if not history:
            self.run(self.store.pruning.prune(Retention(dead=0)))
            self.model.dead.clear()
        elif not self.store.capabilities.partitions:
            self.run(self.store.pruning.prune(Retention(history=0)))
            self.model.published.clear()

    @rule()
    def take_over(self) -> None:
        self.stale, self.owner = self.owner, self.run(self.owner.taken_over())

    @rule(pick=picks)
    def write_under_a_stale_epoch(self, pick: int) -> None:
        message = self._pick(pick)
        if message and self.stale:
            for write in (
                self.stale.settle(DELIVERED, message),
                self.stale.settle(Retry(delay=0, error="stale"), message),
                self.stale.hold(Held.PARKED, message),
                self.stale.split(message, "x", "y"),
                self.stale.count_attempt("stale", message),
            ):
                assert self.run(write).count == 0

    @invariant()
    def every_query_returns_what_the_model_has(self) -> None:
        rows = self.model.in_order()
        ready = self.run(self.owner.ready())
        assert [m.id for m in ready] == sorted(m.id for m in ready)
        # Copies of one event for several destinations share its sequence and are returned in any order.
        assert sorted(map(_state_of, ready)) == sorted(self._expected(row) for row in rows if row.ready)
        due = [_state_of(m) for m in self.run(self.owner.due())]
        assert sorted(due) == sorted(self._expected(row) for row in rows if row.due)
        parked = [_state_of(m) for m in self.run(self.owner.parked(*DESTINATIONS, "z"))]
        assert sorted(parked) == sorted(self._expected(row) for row in rows if row.held == "parked")

    @invariant()
    def waiting_messages_are_fetched_in_order(self) -> None:
        queues = {_name_of(queue): queue for queue in self.run(self.owner.orphaned_queues())}
        assert set(queues) == self.model.orphaned_queues()
        for name, queue in queues.items():
            found = [m.identity for m in self.run(self.owner.waiting(queue))]
            assert found == [row.identity for row in self.model.next_in_queue(name)]

    @invariant()
    def operators_see_the_model(self) -> None:
        for event_id in EVENTS:
            found = self.run(find_event(self.store, event_id))
            assert sorted((row.destination, str(row.status)) for row in found) == self.model.statuses(event_id)
        listed = self.run(dead_letters(self.store))
        contents = [(d.event_id, d.destination, bytes(d.payload), d.attempts) for d in reversed(listed)]
        assert contents == [(d.event_id, d.destination, d.payload, d.attempts) for d in self.model.dead]

    def _recorded(self, event: Event) -> None:
        time: Time | None = next(name for name, value in TIMES.items() if value == event.available_at)
        self.model.record(event.event_id, event.destination, event.key, event.payload, time)

    def _pick(self, pick: int) -> Message | None:
        """Return one of the messages that a relay could have in flight."""
        found = [
            *self.run(self.owner.ready()),
            *self.run(self.owner.due()),
            *self.run(self.owner.parked(*DESTINATIONS, "z")),
            *self.run(self.owner.waiting(*self.run(self.owner.orphaned_queues()))),
        ]
        found.sort(key=lambda m: m.identity)
        return found[pick % len(found)] if found else None

    def _expected(self, row: PendingMessage) -> tuple[Identity, int, int, bool]:
        return row.identity, row.attempts, row.deferrals, self.model.must_wait(row)


def _state_of(message: Message) -> tuple[Identity, int, int, bool]:
    return message.identity, message.attempts, message.deferrals, message.must_wait


def _name_of(queue: KeyQueue) -> QueueName:
    return queue.key, queue.destination
