"""What a fault test needs: a database with a witness, a transport, relays, a workload and a comparison."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from threading import Event
from typing import Any

from pillarbox.core.store import EVERYWHERE
from pillarbox.ops.drill.checker import SOUND, Findings, WriterLedger, check
from pillarbox.schemes import open_store
from tests.faults import receiving
from tests.faults.databases import database_at
from tests.faults.mutants import Guard
from tests.faults.relays import RelayProcess
from tests.faults.workload import Workload
from tests.servers.waiting import wait_until

TIMES = int(os.environ.get("FAULTS_TIMES", "1"))
"""Multiplies the number of events: `make soak` sets it."""
DELIVERED_WITHIN = 60.0
"""Seconds after a fault within which every deliverable event is delivered; generous, for a busy machine."""
A_FEW = 200
PACE = 0.5
"""Seconds between two writes under load: the relays stay busy, and the CPU is not saturated."""
PLENTY = 1_000
"""The load pauses while that many events are pending."""


class Stage:
    """The environment of one test. The seed is printed, so that a failed run can be repeated."""

    def __init__(
        self,
        folder: Path,
        *,
        store: str,
        transport: str,
        event_type: str,
        keys: int = 100,
        without: Guard | None = None,
        settings: Mapping[str, str] = {},
        receive: Callable[[str], Sequence[str]] | None = None,
    ) -> None:
        """settings: of every relay. receive: returns the ids of all events of a type that arrived, in order; None:
        RabbitMQ has them."""
        seed = int(os.environ.get("FAULTS_SEED", random.randrange(2**32)))
        print(f"FAULTS_SEED={seed}")
        self.rng = random.Random(seed)
        self.store = store
        self.transport = transport
        self.event_type = event_type
        self.ledger = WriterLedger()
        self.database = database_at(store)
        self.workload = Workload(self.database, event_type, self.ledger, keys=keys, seed=seed)
        self.relays: list[RelayProcess] = []
        self.folder = folder
        self._settings = {"STORE": store, "TRANSPORT": transport} | dict(settings)
        self._without = without
        self._receive = receive or partial(receiving.take_all, transport)

    # -- relays and load ------------------------------------------------------------------------------------------

    def start(self, settings: Mapping[str, str] = {}, *, wait: bool = True) -> RelayProcess:
        """Start a relay; return once it has a lease, unless `wait` is false."""
        relay = RelayProcess(
            self.folder, self._settings | dict(settings), without=self._without, name_session=self.database.named
        )
        self.relays.append(relay)
        if wait:
            self.wait_until(lambda: self.lives(relay) or not relay.running, what=f"{relay.name} joins")
            assert relay.running, relay.story()
        return relay

    def write(self, count: int) -> None:
        self.workload.write(count * TIMES)

    def pause(self) -> None:
        """Block all sends from now on."""
        self._override(paused=True)

    def resume(self) -> None:
        """Allow sends again."""
        self._override(paused=False)

    def _override(self, *, paused: bool) -> None:
        async def override() -> None:
            store = open_store(self.store)
            assert store.admin is not None
            await store.admin.requests.override(EVERYWHERE, paused=paused, by="test")
            await store.aclose()

        asyncio.run(override())

    @contextmanager
    def under_load(self) -> Iterator[None]:
        """Write at a steady rate while the block is open, as long as the relays keep up."""
        over = Event()

        def write() -> None:
            while not over.is_set():
                if self.waiting() < PLENTY:
                    self.write(A_FEW)
                over.wait(PACE)

        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(write)
            try:
                yield
            finally:
                over.set()
            writing.result()

    # -- what can be known ----------------------------------------------------------------------------------------

    def query(self, statement: str, *parameters: object) -> Sequence[tuple[Any, ...]]:
        return self.database.query(statement, *parameters)

    def number(self, statement: str, *parameters: object) -> int:
        return int(self.query(statement, *parameters)[0][0])

    def is_past(self, since: object, seconds: float) -> bool:
        """Return whether that many seconds have passed on the clock of the database."""
        return self.database.is_past(since, seconds)

    def ids(self, statement: str, *parameters: object) -> list[str]:
        return [str(row[0]) for row in self.query(statement, *parameters)]

    def lives(self, relay: RelayProcess) -> bool:
        """Return whether its lease is valid in the database."""
        return bool(self.number("SELECT count(*) FROM outbox_relay WHERE name = %s", relay.name))

    @cached_property
    def lanes(self) -> int:
        return self.number("SELECT count(*) FROM outbox_lane")

    def lanes_of(self, relay: RelayProcess) -> int:
        return self.number(
            "SELECT count(*) FROM outbox_lane l JOIN outbox_relay r ON r.id = l.owner WHERE r.name = %s", relay.name
        )

    def waiting_for(self, relay: RelayProcess) -> list[str]:
        """Return the pending events in its lanes, which only it can settle."""
        return self.ids(
            f"""SELECT event_id FROM outbox_message m JOIN outbox_lane l {self.database.on_lane}
                JOIN outbox_relay r ON r.id = l.owner WHERE r.name = %s""",
            relay.name,
        )

    def breakers(self) -> set[str]:
        """Return the states of the breakers of all live relays."""
        return set(self.ids("SELECT breakers ->> %s FROM outbox_relay WHERE lease_until > now()", self.event_type))

    def counted(self) -> int:
        """Return the attempts counted for all events, delivered or pending."""
        return self.number("SELECT sum(attempts) FROM outbox_event")

    def failed_sends(self) -> int:
        """Return the deferrals of all events, delivered or pending."""
        return self.number("SELECT sum(retry_count - attempts) FROM outbox_event")

    def waiting(self) -> int:
        return self.number("SELECT count(*) FROM outbox_message")

    def delivered(self) -> int:
        return self.number("SELECT count(*) FROM outbox_history")

    def stale(self) -> list[str]:
        """Return what the witness recorded."""
        return self.ids("SELECT event_id FROM fault_stale")

    # -- waiting for facts ----------------------------------------------------------------------------------------

    def wait_until(self, fact: Callable[[], bool], *, what: str, bound: float = 60) -> None:
        """Wait for a condition, and show the logs of the relays if it does not become true."""
        try:
            wait_until(fact, bound=bound * TIMES, what=what)
        except TimeoutError:
            print(
                self.query(
                    "SELECT held, attempts, deferrals, last_error, count(*) FROM outbox_message GROUP BY 1, 2, 3, 4"
                )
            )
            print(self.query("SELECT attempts, deferrals, last_error, count(*) FROM outbox_history GROUP BY 1, 2, 3"))
            for relay in self.relays:
                print(f"--- {relay.name}, {'running' if relay.running else relay.wait()}\n{relay.story()[-3000:]}")
            raise

    def wait_drained(self, *, bound: float = DELIVERED_WITHIN) -> None:
        """Wait, after the fault, until no deliverable event is pending."""
        self.wait_until(lambda: self.waiting() == 0, what="nothing waits any more", bound=bound)

    def freeze_unsettled(self, relay: RelayProcess) -> None:
        """Freeze it between a confirm and its settlement. If it crashes there, what it had sent is sent again."""
        self.freeze(relay, relay.freeze_before_settlement)
        assert self.unsettled(relay), f"{relay.name} had nothing to settle"

    def freeze(self, relay: RelayProcess, request: Callable[[], None] | None = None) -> None:
        """Freeze it, at once or as requested, and not while another of its threads locks the whole database."""
        while True:
            (request or relay.freeze)()
            self.wait_until(lambda: relay.frozen, what=f"{relay.name} is frozen")
            if not self.database.is_locked():
                return
            relay.thaw()

    def unsettled(self, relay: RelayProcess) -> bool:
        """Return whether an event is pending in its lanes that the relay has confirmed."""
        return not relay.confirmed_last().isdisjoint(self.waiting_for(relay))

    # -- the judgement --------------------------------------------------------------------------------------------

    def stop_all(self) -> None:
        """Drain every running relay; each must exit with 0 and have left."""
        running = [relay for relay in self.relays if relay.running]
        for relay in running:
            relay.terminate()
        codes = {relay.name: relay.wait() for relay in running}
        assert set(codes.values()) <= {0}, codes
        assert [relay.name for relay in self.relays if relay.wait() == 0 and self.lives(relay)] == []

    def check(self) -> Findings:
        """Drain the relays and compare both ledgers; there are no dead letters."""
        self.stop_all()
        assert self.ids("SELECT event_id FROM outbox_dead_letter") == []
        return self.check_against(self.received())

    def received(self) -> Sequence[str]:
        """Return what arrived, in order."""
        return self._receive(self.event_type)

    def check_against(self, received: Sequence[str], *, dead: Iterable[str] = ()) -> Findings:
        """Compare what a consumer received, and what the witness recorded, with what was committed."""
        return check(self.ledger, received, dead=dead, stale=self.stale())

    def close(self) -> None:
        for relay in self.relays:
            relay.end()
        self.database.close()


def assert_sound(findings: Findings, *, duplicates: range) -> None:
    """Check: nothing lost, no phantoms, order kept, every write fenced, and only duplicates that the faults explain."""
    assert findings._replace(duplicates=0) == SOUND
    assert findings.duplicates in duplicates
