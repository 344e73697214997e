"""The steps of the demo: record events, stop the mail server for a while, drain, verify."""

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
from apps.notifications.demo import users
from apps.notifications.demo.environment import Environment
from apps.notifications.demo.outage import MailOutage
from apps.notifications.demo.processes import relay_process
from apps.notifications.demo.progress import Progress, read_progress
from apps.notifications.demo.servers import FakeMailServer, Gateway
from apps.notifications.demo.users import Expected
from apps.notifications.demo.verification import Verification, read, verify
from apps.notifications.domain import Audience
from apps.notifications.embedded import embedded_relay
from apps.notifications.listeners import LISTENERS
from apps.notifications.producers.orders import create_order
from apps.notifications.producers.registration import register_user
from apps.notifications.producers.reservations import request_reservation
from apps.notifications.topology import source_of
from pillarbox import Relay

POLL_EVERY = 0.25
STALL_TIMEOUT = 30.0
"""Seconds without progress after which the demo stops waiting."""

Show = Callable[[Progress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a demo."""

    verification: Verification
    seconds: float
    events: int
    outages: int
    delivered_during_outages: int
    """Push and SMS that were delivered while the mail server was stopped."""


class Scenario:
    """One demo. `stop` ends recording; events already committed are still delivered and verified."""

    def __init__(self, environment: Environment, *, seconds: float | None, rate: float, show: Show) -> None:
        self._environment = environment
        self._seconds = seconds
        self._rate = rate
        self._show = show
        self._stopping = asyncio.Event()
        self._mail, self._gateway = FakeMailServer(), Gateway()
        self._outage = MailOutage(self._mail, self._gateway, planned=seconds)
        self._expected: list[Expected] = []
        self._events = 0
        self._rng = random.Random()  # noqa: S311 - guests, not secrets

    def stop(self) -> None:
        self._stopping.set()

    async def run(self) -> Outcome:
        """Run all steps. Raises PillarboxError if the demo itself fails."""
        async with AsyncExitStack() as stack:
            engine = open_engine(self._environment.database, pool_size=20)
            stack.callback(engine.dispose)
            await asyncio.to_thread(users.insert_users, engine)
            for server in (self._mail, self._gateway):
                server.start()
                stack.callback(server.stop)
            await stack.enter_async_context(_listening(self._environment, engine))
            await stack.enter_async_context(_running(self._delivering()))
            self._began = time.monotonic()
            await self._record_events(engine)
            await self._drain(engine)
            verification = verify(
                self._expected,
                await asyncio.to_thread(read, engine),
                mails=self._mail.accepted,
                requests=self._gateway.accepted,
            )
            return Outcome(
                verification=verification,
                seconds=self._elapsed,
                events=self._events,
                outages=self._outage.count,
                delivered_during_outages=self._outage.delivered_during_outages,
            )

    @property
    def _elapsed(self) -> float:
        return time.monotonic() - self._began

    # -- recording ------------------------------------------------------------------------------------------------

    async def _record_events(self, engine: Engine) -> None:
        next_event = next_poll = 0.0
        while not self._stopping.is_set() and (self._seconds is None or self._elapsed < self._seconds):
            if self._elapsed >= next_event:
                next_event = max(next_event, self._elapsed - 1) + 1 / self._rate
                self._expected += await asyncio.to_thread(self._record_event, engine)
                self._events += 1
            if self._elapsed >= next_poll:
                next_poll = self._elapsed + POLL_EVERY
                await self._poll(engine, "recording")
            await self._wait(min(next_event, next_poll) - self._elapsed)

    def _record_event(self, engine: Engine) -> list[Expected]:
        """Run one business transaction; returns the expected notifications."""
        match self._rng.randrange(3):
            case 0:
                restaurant = self._rng.choice([1, 2])
                number = request_reservation(
                    engine,
                    restaurant_id=restaurant,
                    guest_name=self._rng.choice(["Iris", "Jonas", "Kim"]),
                    party_size=self._rng.randint(1, 8),
                    reserved_for=datetime.now(UTC) + timedelta(days=1),
                )
                return list(users.expected(number, *users.of(Audience.RESTAURANT, restaurant)))
            case 1:
                buyer = self._rng.choice(users.CUSTOMERS)
                number = create_order(engine, customer_id=buyer.aggregate_id, user_id=buyer.user_id, total_cents=1990)
                return list(users.expected(number, buyer))
            case _:
                name = f"newcomer{self._events}"
                number = register_user(engine, agency_id=1, name=name, email=f"{name}@example.org")
                return list(users.expected(number, *users.of(Audience.AGENCY, 1), *users.of(Audience.ADMIN, 1)))

    async def _wait(self, seconds: float) -> None:
        if seconds > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._stopping.wait()

    async def _poll(self, engine: Engine, phase: str) -> Progress:
        self._outage.poll(self._elapsed, over=phase != "recording")
        saved, postponed, delivered, dead = await asyncio.to_thread(read_progress, engine)
        progress = Progress(
            phase=phase,
            elapsed=self._elapsed,
            events=self._events,
            saved=saved,
            postponed=postponed,
            delivered=delivered,
            dead=dead,
            mail_open=self._mail.open,
            log=tuple(self._outage.log),
        )
        self._show(progress)
        return progress

    async def _drain(self, engine: Engine) -> None:
        """Wait until all deliveries that are due have completed, or until progress stops."""
        seen, since = -1, self._elapsed
        while True:
            progress = await self._poll(engine, "draining")
            done = progress.saved.total() + progress.delivered.total()
            if self._mail.open and progress.saved.total() >= len(self._expected) and progress.undelivered <= 0:
                return
            if done > seen:
                seen, since = done, self._elapsed
            elif self._elapsed - since > STALL_TIMEOUT:
                return  # the verification reports what is missing
            await asyncio.sleep(POLL_EVERY)

    # -- the application ------------------------------------------------------------------------------------------

    def _delivering(self) -> AbstractAsyncContextManager[Relay]:
        settings = DeliverySettings(
            mail=MailServer(host="127.0.0.1", port=self._mail.port),
            sender=Address(display_name="The demo", addr_spec="demo@example.org"),
            push=GatewayAt(url=f"{self._gateway.url}/push"),
            sms=GatewayAt(url=f"{self._gateway.url}/sms"),
        )
        return delivering(self._environment.database, settings)


@asynccontextmanager
async def _running(made: AbstractAsyncContextManager[Relay]) -> AsyncIterator[None]:
    async with made as relay, relay:
        yield


@asynccontextmanager
async def _listening(environment: Environment, engine: Engine) -> AsyncIterator[None]:
    """Run layers 1 and 2: in this process, or with a broker between them."""
    if not environment.broker:
        async with _running(embedded_relay(environment.database, engine)):
            yield
        return
    async with AsyncExitStack() as stack:
        for audience, listener in LISTENERS.items():
            await stack.enter_async_context(listener(engine, source=source_of(audience, environment.broker)).consumer)
        await stack.enter_async_context(relay_process(environment))
        yield
