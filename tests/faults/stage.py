"""Everything one fault test needs: a database, a way out, relays, a workload and the judgement."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg

from tests.faults import far_side
from tests.faults.ledger import Findings, Ledger, judge
from tests.faults.relays import RelayProcess
from tests.faults.workload import Workload
from tests.servers.waiting import wait_until

TIMES = int(os.environ.get("FAULTS_TIMES", "1"))
"""How many times the usual number of events: `make faults` sets it."""


class Stage:
    """One test's world. The seed is printed, so that a failing run can be had again."""

    def __init__(self, folder: Path, *, store: str, transport: str, event_type: str, keys: int = 100) -> None:
        seed = int(os.environ.get("FAULTS_SEED", random.randrange(2**32)))
        print(f"FAULTS_SEED={seed}")
        self.chance = random.Random(seed)
        self.store = store
        self.transport = transport
        self.event_type = event_type
        self.ledger = Ledger()
        self.workload = Workload(store, event_type, self.ledger, keys=keys, seed=seed)
        self.relays: list[RelayProcess] = []
        self.arrived: list[str] = []
        self._folder = folder

    def start(self, *, wait: bool = True, **more: str) -> RelayProcess:
        """A relay; returns once it lives in the database, unless it is not waited for."""
        relay = RelayProcess(self._folder, store=self.store, transport=self.transport, more=more)
        self.relays.append(relay)
        if wait:
            self.wait_until(lambda: bool(self.lease(relay)), what=f"{relay.name} joins")
        return relay

    def write(self, count: int) -> None:
        self.workload.write(count * TIMES)

    def query(self, statement: str, *parameters: object) -> Sequence[tuple[Any, ...]]:
        with psycopg.connect(self.store, autocommit=True) as connection:
            return connection.execute(statement, parameters).fetchall()

    def number(self, statement: str, *parameters: object) -> int:
        return int(self.query(statement, *parameters)[0][0])

    def lease(self, relay: RelayProcess) -> int:
        return self.number("SELECT count(*) FROM outbox_relay WHERE name = %s", relay.name)

    def lanes_of(self, relay: RelayProcess) -> int:
        return self.number(
            "SELECT count(*) FROM outbox_lane l JOIN outbox_relay r ON r.id = l.owner WHERE r.name = %s", relay.name
        )

    def breakers(self) -> set[str]:
        """The states of the breakers of all relays that live."""
        rows = self.query("SELECT breakers ->> %s FROM outbox_relay WHERE lease_until > now()", self.event_type)
        return {str(row[0]) for row in rows}

    def charged(self) -> int:
        """Attempts counted against any event, delivered or waiting."""
        return self.number("SELECT sum(attempts) FROM outbox_event")

    def at_work(self, relay: RelayProcess) -> bool:
        """Messages wait in its lanes. A relay reads whatever it finds at once, so it has some of them in hand."""
        return bool(
            self.number(
                """SELECT count(*) FROM outbox_message m JOIN outbox_lane l USING (lane)
                   JOIN outbox_relay r ON r.id = l.owner WHERE r.name = %s""",
                relay.name,
            )
        )

    def freeze_at_work(self, relay: RelayProcess) -> None:
        """Freeze it while it has messages in hand; a moment at which it has none does not count."""

        def frozen() -> bool:
            relay.freeze()
            if self.at_work(relay):
                return True
            relay.thaw()
            return False

        self.wait_until(frozen, what=f"{relay.name} is frozen at work")

    def waiting(self) -> int:
        return self.number("SELECT count(*) FROM outbox_message")

    def delivered(self) -> int:
        return self.number("SELECT count(*) FROM outbox_history")

    def wait_until(self, fact: Any, *, what: str, bound: float = 60) -> None:
        """Wait for a fact, and show what the relays said if it does not come."""
        try:
            wait_until(fact, bound=bound * TIMES, what=what)
        except TimeoutError:
            print(
                self.query("SELECT held, attempts, tries, last_error, count(*) FROM outbox_message GROUP BY 1, 2, 3, 4")
            )
            print(self.query("SELECT attempts, tries, last_error, count(*) FROM outbox_history GROUP BY 1, 2, 3"))
            for relay in self.relays:
                print(f"--- {relay.name}, {'running' if relay.running else relay.wait()}\n{relay.said()[-3000:]}")
            raise

    def wait_drained(self, *, bound: float = 60) -> None:
        self.wait_until(lambda: self.waiting() == 0, what="nothing waits any more", bound=bound)

    def stop_all(self) -> None:
        """Drain every relay that runs; each must say so with 0."""
        running = [relay for relay in self.relays if relay.running]
        for relay in running:
            relay.terminate()
        codes = {relay.name: relay.wait() for relay in running}
        assert set(codes.values()) <= {0}, codes

    def judge(self) -> Findings:
        """Drain the relays and compare both ledgers; whoever drained has left, and nothing was given up on."""
        self.stop_all()
        assert [relay.name for relay in self.relays if relay.wait() == 0 and self.lease(relay)] == []
        assert self.query("SELECT * FROM outbox_dead") == []
        self.collect()
        far_side.delete(self.transport, self.event_type)
        return judge(self.ledger, self.arrived)

    def collect(self) -> None:
        """Take what lies in the queue, until nothing more came while it was taken."""
        while taken := far_side.take(self.transport, self.event_type):
            self.arrived += taken

    def close(self) -> None:
        for relay in self.relays:
            relay.end()


def assert_nothing_lost(findings: Findings, *, most_duplicates: int) -> None:
    """No loss, no phantom, order kept, and no more duplicates than the faults explain."""
    assert findings._replace(duplicates=0) == Findings(lost=[], phantom=[], out_of_order=[], duplicates=0)
    assert findings.duplicates <= most_duplicates
