"""The course of the demo: business goes on, the mail server breaks and comes back, everything drains."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.headerregistry import Address

from sqlalchemy import Engine

from apps.notifications.database import open_engine
from apps.notifications.delivery.relay import delivering
from apps.notifications.delivery.settings import DeliverySettings, MailServer
from apps.notifications.delivery.settings import Gateway as GatewayAt
from apps.notifications.demo import cast
from apps.notifications.demo.breakdown import Breakdown
from apps.notifications.demo.cast import Told
from apps.notifications.demo.outside import Gateway, Mailroom
from apps.notifications.demo.processes import shipped_relay
from apps.notifications.demo.stage import Stage
from apps.notifications.demo.verdict import Verdict, judge, read
from apps.notifications.demo.watching import Figures, look
from apps.notifications.embedded import embedded_relay
from apps.notifications.listeners import LISTENERS
from apps.notifications.producers.orders import create_order
from apps.notifications.producers.registration import register_user
from apps.notifications.producers.reservations import request_reservation
from apps.notifications.topology import source_of
from apps.notifications.words import Audience
from pillarbox import Relay

LOOK_EVERY = 0.25
STUCK = 30.0
"""Seconds without any progress after which nobody waits for the rest."""

Show = Callable[[Figures], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a demo ends with."""

    verdict: Verdict
    seconds: float
    events: int
    breakdowns: int
    pushed_meanwhile: int
    """Push and SMS that arrived while no mail could."""


class Play:
    """One demo. `stop` ends the business; what was committed is still carried to the end and judged."""

    def __init__(self, stage: Stage, *, seconds: float | None, rate: float, show: Show) -> None:
        self._stage = stage
        self._seconds = seconds
        self._rate = rate
        self._show = show
        self._stopping = asyncio.Event()
        self._mail, self._gateway = Mailroom(), Gateway()
        self._breakdown = Breakdown(self._mail, self._gateway, planned=seconds)
        self._expected: list[Told] = []
        self._events = 0
        self._chance = random.Random()  # noqa: S311 - guests, not secrets

    def stop(self) -> None:
        self._stopping.set()

    async def run(self) -> Outcome:
        """From the first reservation to the verdict. Raises PillarboxError if the demo itself could not go on."""
        async with AsyncExitStack() as stack:
            engine = open_engine(self._stage.database, pool_size=20)
            stack.callback(engine.dispose)
            await asyncio.to_thread(cast.settle, engine)
            for server in (self._mail, self._gateway):
                server.start()
                stack.callback(server.stop)
            await stack.enter_async_context(_listening(self._stage, engine))
            await stack.enter_async_context(_running(self._delivering()))
            self._began = time.monotonic()
            await self._do_business(engine)
            await self._drain(engine)
            verdict = judge(
                self._expected,
                await asyncio.to_thread(read, engine),
                mails=self._mail.took,
                requests=self._gateway.took,
            )
            return Outcome(
                verdict=verdict,
                seconds=self._elapsed,
                events=self._events,
                breakdowns=self._breakdown.times,
                pushed_meanwhile=self._breakdown.pushed_meanwhile,
            )

    @property
    def _elapsed(self) -> float:
        return time.monotonic() - self._began

    # -- business -------------------------------------------------------------------------------------------------

    async def _do_business(self, engine: Engine) -> None:
        next_event = next_look = 0.0
        while not self._stopping.is_set() and (self._seconds is None or self._elapsed < self._seconds):
            if self._elapsed >= next_event:
                next_event = max(next_event, self._elapsed - 1) + 1 / self._rate
                self._expected += await asyncio.to_thread(self._something_happens, engine)
                self._events += 1
            if self._elapsed >= next_look:
                next_look = self._elapsed + LOOK_EVERY
                await self._look(engine, "business")
            await self._wait(min(next_event, next_look) - self._elapsed)

    def _something_happens(self, engine: Engine) -> list[Told]:
        """One business transaction; returns what people should hear of it."""
        match self._chance.randrange(3):
            case 0:
                restaurant = self._chance.choice([1, 2])
                number = request_reservation(
                    engine,
                    restaurant_id=restaurant,
                    guest_name=self._chance.choice(["Iris", "Jonas", "Kim"]),
                    party_size=self._chance.randint(1, 8),
                    reserved_for=datetime.now(UTC) + timedelta(days=1),
                )
                return list(cast.expected(number, *cast.of(Audience.RESTAURANT, restaurant)))
            case 1:
                buyer = self._chance.choice(cast.CUSTOMERS)
                number = create_order(engine, customer_id=buyer.aggregate_id, user_id=buyer.user_id, total_cents=1990)
                return list(cast.expected(number, buyer))
            case _:
                name = f"newcomer{self._events}"
                number = register_user(engine, agency_id=1, name=name, email=f"{name}@example.org")
                return list(cast.expected(number, *cast.of(Audience.AGENCY, 1), *cast.of(Audience.ADMIN, 1)))

    async def _wait(self, seconds: float) -> None:
        if seconds > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._stopping.wait()

    async def _look(self, engine: Engine, phase: str) -> Figures:
        self._breakdown.look(self._elapsed, over=phase != "business")
        told, postponed, delivered, dead = await asyncio.to_thread(look, engine)
        figures = Figures(
            phase=phase,
            elapsed=self._elapsed,
            events=self._events,
            told=told,
            postponed=postponed,
            delivered=delivered,
            dead=dead,
            mail_open=self._mail.open,
            happenings=tuple(self._breakdown.happenings),
        )
        self._show(figures)
        return figures

    async def _drain(self, engine: Engine) -> None:
        """Until everything that can arrive has arrived, or nothing moves any more."""
        seen, since = -1, self._elapsed
        while True:
            figures = await self._look(engine, "draining")
            done = figures.told.total() + figures.delivered.total()
            if self._mail.open and figures.told.total() >= len(self._expected) and figures.undelivered <= 0:
                return
            if done > seen:
                seen, since = done, self._elapsed
            elif self._elapsed - since > STUCK:
                return  # the verdict says what is missing
            await asyncio.sleep(LOOK_EVERY)

    # -- the application ------------------------------------------------------------------------------------------

    def _delivering(self) -> AbstractAsyncContextManager[Relay]:
        settings = DeliverySettings(
            mail=MailServer(host="127.0.0.1", port=self._mail.port),
            sender=Address(display_name="The demo", addr_spec="demo@example.org"),
            push=GatewayAt(url=f"{self._gateway.url}/push"),
            sms=GatewayAt(url=f"{self._gateway.url}/sms"),
        )
        return delivering(self._stage.database, settings)


@asynccontextmanager
async def _running(made: AbstractAsyncContextManager[Relay]) -> AsyncIterator[None]:
    async with made as relay, relay:
        yield


@asynccontextmanager
async def _listening(stage: Stage, engine: Engine) -> AsyncIterator[None]:
    """Layers 1 and 2: in one process, or with a broker between them."""
    if not stage.broker:
        async with _running(embedded_relay(stage.database, engine)):
            yield
        return
    async with AsyncExitStack() as stack:
        for audience, listener in LISTENERS.items():
            await stack.enter_async_context(listener(engine, source=source_of(audience, stage.broker)).consumer)
        await stack.enter_async_context(shipped_relay(stage))
        yield
