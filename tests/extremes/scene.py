"""What a test of an extreme needs: a store, relays, a writer with a ledger, and the comparison with what arrived."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from threading import Event as Flag
from typing import Any

from pillarbox import Event, Outbox
from pillarbox.ops.drill.checker import WriterLedger, check
from tests.extremes.databases import connected, number, rows
from tests.extremes.relays import RelayProcess
from tests.servers.waiting import wait_until

WITHIN = 120.0
"""Seconds after a fault within which every deliverable event is delivered; generous, for a busy machine."""
PER_TRANSACTION = 100
PACE = 0.2
PLENTY = 2_000
"""The load pauses while that many events are pending."""


class Scene:
    """One store, one transport and events of one type; each key has one writer, so that its commits have an order.

    store: the URL for writers and queries. settings: those of every relay; STORE and TRANSPORT are among them if the
    relays reach either on another way.
    """

    def __init__(
        self, folder: Path, *, store: str, event_type: str, settings: Mapping[str, str], keys: int = 20
    ) -> None:
        self.folder = folder
        self.store = store
        self.event_type = event_type
        self.keys = keys
        self.settings = {"STORE": store} | dict(settings)
        self.ledger = WriterLedger()
        self.relays: list[RelayProcess] = []
        self.outbox = Outbox()
        self._doubts: list[tuple[str, str]] = []
        """Keys and ids whose commit was requested and not answered."""

    # -- relays and load ------------------------------------------------------------------------------------------

    def start(self, settings: Mapping[str, str] | None = None, *, wait: bool = True, **options: Any) -> RelayProcess:
        """Start a relay; return once it has registered, unless `wait` is false."""
        relay = RelayProcess(self.folder, self.settings | dict(settings or {}), **options)
        self.relays.append(relay)
        if wait:
            self.wait_until(lambda: self.is_registered(relay) or not relay.running, what=f"{relay.name} registers")
            assert relay.running, relay.story()
        return relay

    def write(self, count: int, payload: Any = None, **fields: Any) -> list[str]:
        """Commit that many events over all keys, in transactions of a few; return their ids."""
        written: list[str] = []
        self._resolve_doubts()
        with connected(self.store) as connection:
            for first in range(0, count, PER_TRANSACTION):
                keys = [f"key-{n % self.keys}" for n in range(first, min(first + PER_TRANSACTION, count))]
                events = [Event(self.event_type, payload or {"filler": "x" * 200}, key=key, **fields) for key in keys]
                ids = self.outbox.record(connection, *events)
                self._doubts = list(zip(keys, ids, strict=True))
                connection.commit()
                self.ledger.commit(self._doubts)
                self._doubts = []
                written += ids
        return written

    def schedule(self, count: int, *, due: datetime) -> list[str]:
        """Commit that many events that are due at a time; they have no key."""
        with connected(self.store) as connection:
            events = [Event(self.event_type, {}, available_at=due) for _ in range(count)]
            ids = self.outbox.record(connection, *events)
            connection.commit()
        self.ledger.commit(zip(ids, ids, strict=True))
        return ids

    def _resolve_doubts(self) -> None:
        """Note which events were committed although the commit failed: the answer may have been lost."""
        if self._doubts:
            stored = {
                str(event_id)
                for name in ("outbox_message", "outbox_history")
                for (event_id,) in self.query(f"SELECT event_id FROM {name}")
            }
            self.ledger.commit((key, event_id) for key, event_id in self._doubts if event_id in stored)
            self._doubts = []

    @contextmanager
    def under_load(self) -> Iterator[None]:
        """Write at a steady rate while the block is open, as long as the relays keep up."""
        over = Flag()

        def write() -> None:
            while not over.is_set():
                if self.pending() < PLENTY:
                    self.write(PER_TRANSACTION)
                over.wait(PACE)

        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(write)
            try:
                yield
            finally:
                over.set()
            writing.result()

    # -- what can be known ----------------------------------------------------------------------------------------

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        return rows(self.store, statement)

    def number(self, statement: str) -> int:
        return number(self.store, statement)

    def waiting(self) -> set[str]:
        """Return the ids of the pending events."""
        return {str(event_id) for (event_id,) in self.query("SELECT event_id FROM outbox_message")}

    def pending(self) -> int:
        return self.number("SELECT count(*) FROM outbox_message")

    def delivered(self) -> int:
        return self.number("SELECT count(*) FROM outbox_history")

    def attempts(self) -> int:
        """Return the attempts counted for all events."""
        return sum(self.number(f"SELECT coalesce(sum(attempts), 0) FROM {name}") for name in _PLACES)

    def is_registered(self, relay: RelayProcess) -> bool:
        return bool(self.number(f"SELECT count(*) FROM outbox_relay WHERE name = '{relay.name}'"))

    def lanes_of(self, relay: RelayProcess) -> int:
        return self.number(
            f"SELECT count(*) FROM outbox_lane l JOIN outbox_relay r ON r.id = l.owner WHERE r.name = '{relay.name}'"
        )

    def ownership(self) -> list[tuple[Any, ...]]:
        """Return owner and epoch of every lane: both change if another relay takes a lane."""
        return self.query("SELECT lane, owner, epoch FROM outbox_lane ORDER BY lane")

    # -- waiting for facts ----------------------------------------------------------------------------------------

    def wait_until(self, fact: Callable[[], bool], *, what: str, bound: float = WITHIN) -> None:
        """Wait for a condition, and show the logs of the relays if it does not become true."""
        try:
            wait_until(fact, bound=bound, what=what, pause=0.05)
        except TimeoutError:
            for relay in self.relays:
                print(f"--- {relay.name}, {'running' if relay.running else relay.wait()}\n{relay.story()[-4000:]}")
            raise

    def wait_delivered(self, count: int) -> None:
        """Wait until that many more events are delivered."""
        enough = self.delivered() + count
        self.wait_until(lambda: self.delivered() >= enough, what=f"{count} more events are delivered")

    def wait_drained(self, *, but: int = 0, bound: float = WITHIN) -> None:
        """Wait until all but that many events are delivered."""
        self.wait_until(lambda: self.pending() <= but, what=f"at most {but} events are pending", bound=bound)

    def wait_shared(self) -> None:
        """Wait until every running relay has its share of the lanes; SQLite has one lane, and the others stand by."""
        lanes, running = self.number("SELECT count(*) FROM outbox_lane"), [r for r in self.relays if r.running]
        shares = sorted(lanes // len(running) + (n < lanes % len(running)) for n in range(len(running)))
        self.wait_until(lambda: sorted(map(self.lanes_of, running)) == shares, what=f"the relays have {shares} lanes")

    # -- the result -----------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Let every running relay drain; each must exit with 0."""
        running = [relay for relay in self.relays if relay.running]
        codes = {relay.name: relay.stop() for relay in running}
        assert set(codes.values()) <= {0}, codes

    def assert_sound(self, received: Sequence[str], *, duplicates: int = 0) -> None:
        """Check: nothing lost, no phantoms, no dead letters, order kept, and at most that many duplicates.

        What is still pending is not lost, and must not have arrived.
        """
        assert received, "nothing arrived, so that the comparison shows nothing"
        assert self.query("SELECT event_id, error FROM outbox_dead_letter LIMIT 5") == []
        waiting = self.waiting()
        found = check(self.ledger, received, dead=waiting)
        assert (found.lost, found.phantom, found.out_of_order) == ([], [], [])
        assert waiting.isdisjoint(received)
        assert found.duplicates <= duplicates, f"{found.duplicates} duplicates"

    def close(self) -> None:
        for relay in self.relays:
            relay.end()


_PLACES = ("outbox_message", "outbox_history", "outbox_dead_letter")
