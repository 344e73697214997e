"""Sending: a fixed set of senders per transport, each with a lot of its own, order kept by the hand.

What a transport answers becomes a verdict. An outage is told from a bad message here: a destination that accepted none
of a lot and says it cannot be reached is closed, its messages are noted and let go of, and nobody is charged.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

from pillarbox.core import failpoints
from pillarbox.core.clock import Chance, Clock
from pillarbox.core.duration import seconds
from pillarbox.core.errors import Nacked, PermanentError, Rejected, SendError, StoreUnavailable, Unavailable
from pillarbox.core.observations import Announcer, EventSkipped, Sending, StoreFailed
from pillarbox.core.outcome import DELIVERED, Dead, Delivered, Outcome, Resolved, Retry
from pillarbox.core.retry import RetryPolicy
from pillarbox.core.store import Ledger
from pillarbox.core.transport import Outgoing, Result, Transport
from pillarbox.relay.bodies import compose, outgoing_headers
from pillarbox.relay.gates import A_LOT, Gate, Gates
from pillarbox.relay.hand import Hand, Item
from pillarbox.relay.lanes import Ownership
from pillarbox.relay.routing import Routing
from pillarbox.relay.settlement import Settlement
from pillarbox.relay.stops import Stops
from pillarbox.relay.telling import tell
from pillarbox.relay.tuning import Tuning
from pillarbox.relay.verdict import OUTAGE, error_text, judge

LEDGER_PAUSE = 0.5
LONGEST_PAUSE = 5.0
"""A sender looks by itself at least so often, whatever it is told."""


class Dispatch:
    """From the hand to the transports, and from their answers to verdicts."""

    def __init__(
        self,
        *,
        relay: str,
        routing: Routing,
        gates: Gates,
        hand: Hand,
        stops: Stops,
        ownership: Ownership,
        settlement: Settlement,
        ledger: Ledger | None,
        policy: RetryPolicy,
        tuning: Tuning,
        clock: Clock,
        chance: Chance,
        announce: Announcer,
    ) -> None:
        self.relay = relay
        self._routing = routing
        self._gates = gates
        self._hand = hand
        self._stops = stops
        self._ownership = ownership
        self._settlement = settlement
        self._ledger = ledger
        self._policy = policy
        self._tuning = tuning
        self._timeout = seconds(tuning.send_timeout)
        self._clock = clock
        self._chance = chance
        self._announce = announce
        self._work = asyncio.Event()
        self._sending = 0
        self.stopping = False
        self.on_change: Callable[[], None] = lambda: None
        """Told whenever something was answered or a gate moved."""

    @property
    def idle(self) -> bool:
        return self._sending == 0

    def stir(self) -> None:
        """There may be something to send."""
        self._work.set()

    async def run(self, transport: Transport) -> None:
        """One sender: takes what may go, sends it, judges the answers."""
        while True:
            lot = [] if self.stopping else self._collect(transport)
            if lot:
                await self._send(transport, lot)
            else:
                await self._pause()

    async def _pause(self) -> None:
        self._work.clear()
        try:
            async with asyncio.timeout(max(0.01, min(LONGEST_PAUSE, self._gates.wait()))):
                await self._work.wait()
        except TimeoutError:
            return

    def _collect(self, transport: Transport) -> list[tuple[Gate, Item]]:
        if not self._ownership.may_send():
            return []
        now = self._clock.monotonic()
        lot: list[tuple[Gate, Item]] = []
        for gate in self._gates:
            if gate.place.transport is not transport:
                continue
            room = min(transport.pace.lot - len(lot), gate.may_send(now), A_LOT)
            items = self._hand.sendable(gate.place.name, room) if room > 0 else []
            if items:
                gate.sent(len(items), now)
                lot += [(gate, item) for item in items]
        return lot

    async def _send(self, transport: Transport, lot: Sequence[tuple[Gate, Item]]) -> None:
        self._sending += 1
        try:
            if self._ledger is not None:
                lot = await self._not_sent_before(self._ledger, lot)
            results = await self._answers(transport, lot)
            failpoints.hit("after-confirm")
            self._judge(lot, results)
        finally:
            self._sending -= 1
            self.on_change()

    async def _not_sent_before(self, ledger: Ledger, lot: Sequence[tuple[Gate, Item]]) -> list[tuple[Gate, Item]]:
        """Settle what the ledger knows to have been sent; returns the rest, noted as about to be sent."""
        try:
            known = await ledger.begin([Resolved(item.message, item.destination) for _, item in lot])
        except StoreUnavailable as error:
            # Nothing was sent: whatever became of the note, they come again.
            for _, item in lot:
                self.let_go([item, *self._hand.stopped(item)])
            self._announce(StoreFailed(relay=self.relay, error=str(error), delay=LEDGER_PAUSE))
            await self._clock.sleep(LEDGER_PAUSE)
            return []
        for (_, item), sent in zip(lot, known, strict=True):
            if sent:
                self._hand.confirmed(item)
                self._settlement.add(item, DELIVERED)
                self._announce(EventSkipped(relay=self.relay, message=item.message, destination=item.destination))
        return [one for one, sent in zip(lot, known, strict=True) if not sent]

    async def _answers(self, transport: Transport, lot: Sequence[tuple[Gate, Item]]) -> list[Result]:
        results: list[Result] = [None] * len(lot)
        outgoing: list[Outgoing] = []
        positions: list[int] = []
        for position, (gate, item) in enumerate(lot):
            try:
                outgoing.append(self._outgoing(gate, item))
                positions.append(position)
            except PermanentError as error:
                results[position] = error
        self._tell_sending(lot)
        failpoints.hit("before-send")
        began = self._clock.monotonic()
        try:
            # A little more than the transport's own: it knows better what was cut off.
            async with asyncio.timeout(None if transport.pace.bounded else self._timeout + 1):
                answers = await transport.send(outgoing) if outgoing else []
                if len(answers) != len(outgoing):
                    raise RuntimeError(f"{len(answers)} answers to {len(outgoing)} messages")
        except TimeoutError:
            answers = [Unavailable(f"no answer within {self._tuning.send_timeout}")] * len(outgoing)
        except SendError as error:
            answers = [error] * len(outgoing)
        except Exception as error:
            # It should have been a verdict. Nobody knows what was sent, so it is sent again: nothing is lost.
            fault = f"{type(transport).__name__} is at fault: {error_text(error)}"
            answers = [Unavailable(fault)] * len(outgoing)
        took = self._clock.monotonic() - began
        for position, answer in zip(positions, answers, strict=True):
            results[position] = answer
            lot[position][1].took = took
        return results

    def _outgoing(self, gate: Gate, item: Item) -> Outgoing:
        message, place = item.message, gate.place
        body, content_type = compose(message, place.destination.body, now=self._clock.now())
        return Outgoing(
            message=message,
            address=place.destination.address,
            body=body,
            content_type=content_type,
            headers=outgoing_headers(message),
            attempt=item.attempt,
            epoch=self._ownership.epoch(message.lane),
        )

    def _judge(self, lot: Sequence[tuple[Gate, Item]], results: Sequence[Result]) -> None:
        by_gate: defaultdict[Gate, list[tuple[Item, Result]]] = defaultdict(list)
        for (gate, item), result in zip(lot, results, strict=True):
            by_gate[gate].append((item, result))
        for gate, answers in by_gate.items():
            self._judge_one(gate, answers)

    def _judge_one(self, gate: Gate, answers: list[tuple[Item, Result]]) -> None:
        passed = any(result is None for _, result in answers)
        cut_off = sum(isinstance(result, Unavailable) and not isinstance(result, Nacked) for _, result in answers)
        outage: str | None = None
        noted: list[Item] = []
        for item, result in answers:
            # Alone among neighbours that passed, and not for the first time, it is the message: a connection that
            # broke on the last one of a lot looks the same once.
            outcome = judge(
                # What was written before the send is not to be counted twice.
                item.message._replace(attempts=item.message.attempts - 1) if item.noted else item.message,
                result,
                policy=self._policy,
                chance=self._chance,
                after_death=self._tuning.after_death,
                outages=self._tuning.outages,
                alone=passed and cut_off == 1 and item.message.tries > 0,
            )
            if outcome is OUTAGE:
                outage = error_text(result) if result is not None else ""
                self._settlement.note(item, outage, self._hand.stopped(item))
                noted.append(item)
            else:
                self._settle(item, _noted(outcome) if item.noted else outcome, result)
        if passed:
            self._gates.accepted(gate)
        elif outage is not None:
            first = gate.well
            self._close(gate, outage)
            # One line per event when an outage begins; after that one per probe, which the breaker tells.
            for item in noted if first else ():
                delay = gate.breaker.next_try(self._clock.monotonic())
                tell(self._announce, self.relay, item, Retry(delay=delay, error=outage, charge=False))
        else:
            self._all_refused(gate, answers)

    def _all_refused(self, gate: Gate, answers: list[tuple[Item, Result]]) -> None:
        nacks = [result for _, result in answers if isinstance(result, Nacked)]
        rejected = [(item, result) for item, result in answers if isinstance(result, Rejected)]
        if nacks:
            # A full queue: every message waits by itself, and so does the destination.
            self._gates.unavailable(gate, error_text(nacks[-1]))
        elif rejected:
            self._gates.rejected(gate, [item.message.event_id for item, _ in rejected], error_text(rejected[-1][1]))

    def _close(self, gate: Gate, error: str) -> None:
        """It takes nothing now: let go of what waits for it, so that others find room."""
        self._gates.unavailable(gate, error)
        self.let_go(self._hand.unsent(gate.place.name))

    def let_go(self, items: Sequence[Item]) -> None:
        """Give messages back as they were; nothing is written."""
        for item in items:
            self._stops.let_go(item.line)
        self._hand.forget(items)

    def _settle(self, item: Item, outcome: Outcome, result: Result) -> None:
        match outcome:
            case Delivered():
                self._hand.confirmed(item)
                self._settlement.add(item, outcome)
            case Retry() | Dead(block=True):
                self._settlement.add(item, outcome, self._hand.stopped(item))
            case Dead():
                self._hand.confirmed(item)
                self._settlement.add(item, outcome)
            case _:
                raise AssertionError(f"{outcome} is no answer to {result}")
        tell(self._announce, self.relay, item, outcome)
        self.stir()

    def _tell_sending(self, lot: Sequence[tuple[Gate, Item]]) -> None:
        if self._announce.observers:
            by_name: defaultdict[str, list[Item]] = defaultdict(list)
            for gate, item in lot:
                by_name[gate.place.name].append(item)
            for name, items in by_name.items():
                messages = tuple(item.message for item in items)
                self._announce(Sending(relay=self.relay, destination=name, messages=messages))


def _noted(outcome: Outcome) -> Outcome:
    return replace(outcome, noted=True) if isinstance(outcome, (Retry, Dead)) else outcome
