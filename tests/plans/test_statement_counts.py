"""The number of statements does not depend on the number of messages, lanes or keys: counted, not timed."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import asyncpg
import pytest

from pillarbox.core.fetch import Bounds, Due, Ready
from pillarbox.core.lane import Epochs, RelayRegistration, epochs_of
from pillarbox.core.message import Held, Message
from pillarbox.core.outcome import DELIVERED, Dead, Decision, Outcome, Resolved, Retry, Split
from pillarbox.core.store import LedgerKind
from pillarbox.ops.monitor.snapshot import SnapshotCache
from pillarbox.stores.postgres import PostgresStore

SIZES = [(1, 1), (10, 1), (10, 10), (500, 1), (500, 500)]
"""Messages and keys; 500 keys spread over all 64 lanes, one key is one lane."""


class Counter:
    """Counts what every connection of the store sends."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent = 0
        fetch = asyncpg.Connection.fetch

        async def counting(connection: Any, query: str, *arguments: Any, **options: Any) -> Any:
            self.sent += 1
            return await fetch(connection, query, *arguments, **options)

        monkeypatch.setattr(asyncpg.Connection, "fetch", counting)

    @contextmanager
    def expecting(self, statements: int) -> Iterator[None]:
        before = self.sent
        yield
        assert self.sent - before == statements


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch) -> Counter:
    return Counter(monkeypatch)


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(postgres_url)
    yield store
    await store.aclose()


async def filled(store: PostgresStore, url: str, messages: int, keys: int) -> Epochs:
    sql = await asyncpg.connect(url)
    await sql.execute(
        f"INSERT INTO outbox_message (event_type, payload, ordering_key)"
        f" SELECT 'a', '{{}}', 'key ' || g % {keys} FROM generate_series(1, {messages}) g"
    )
    await sql.close()
    await store.lanes.join(RelayRegistration(id="a"), lease=60)
    return epochs_of(await store.lanes.acquire("a", limit=64))


async def read(store: PostgresStore, epochs: Epochs) -> list[Message]:
    return await store.messages.fetch(Ready(lanes=list(epochs), bounds=Bounds()))


@pytest.mark.parametrize(("messages", "keys"), SIZES)
async def test_reading_and_settling_take_one_statement_each(
    store: PostgresStore, postgres_url: str, counter: Counter, messages: int, keys: int
) -> None:
    epochs = await filled(store, postgres_url, messages, keys)
    with counter.expecting(1):
        found = await read(store, epochs)
    assert len(found) == messages
    with counter.expecting(1):
        settled = await store.writes.settle(epochs, [Decision(message, DELIVERED, "x") for message in found])
    assert settled.count == messages


MIXED: list[Outcome] = [DELIVERED, Retry(delay=0, error="no"), Dead(error="no"), Dead(error="no", block=True)]


@pytest.mark.parametrize(("messages", "keys"), SIZES[1:])
async def test_a_batch_of_every_outcome_takes_three_statements(
    store: PostgresStore, postgres_url: str, counter: Counter, messages: int, keys: int
) -> None:
    epochs = await filled(store, postgres_url, messages, keys)
    found = await read(store, epochs)
    with counter.expecting(3):
        await store.writes.settle(
            epochs, [Decision(message, MIXED[n % len(MIXED)], "x") for n, message in enumerate(found)]
        )
    with counter.expecting(1):
        await store.messages.fetch(Due(lanes=list(epochs)))


@pytest.mark.parametrize(("messages", "keys"), SIZES)
async def test_holding_splitting_and_counting_take_one_statement(
    store: PostgresStore, postgres_url: str, counter: Counter, messages: int, keys: int
) -> None:
    epochs = await filled(store, postgres_url, messages, keys)
    found = await read(store, epochs)
    with counter.expecting(1):
        await store.writes.count_attempt(epochs, [Resolved(message, "") for message in found], error="down")
    with counter.expecting(1):
        await store.writes.split(epochs, [Split(message, ("x", "y")) for message in found])
    copies = [message for message in await read(store, epochs) if message.destination == "x"]
    with counter.expecting(1):
        await store.writes.hold(epochs, [Resolved(message, "x") for message in copies], Held.PARKED)


@pytest.mark.parametrize("ledger", [True, "history"])
@pytest.mark.parametrize(("messages", "keys"), SIZES)
async def test_a_ledger_costs_one_statement_more(
    store: PostgresStore, postgres_url: str, counter: Counter, messages: int, keys: int, ledger: LedgerKind
) -> None:
    keeping = store.clone(ledger=ledger)
    epochs = await filled(keeping, postgres_url, messages, keys)
    found = await read(keeping, epochs)
    assert keeping.ledger is not None
    with counter.expecting(1):
        await keeping.ledger.begin([Resolved(message, "x") for message in found])
    with counter.expecting(1):
        await keeping.writes.settle(epochs, [Decision(message, DELIVERED, "x") for message in found])
    await keeping.aclose()


@pytest.mark.parametrize(("messages", "keys"), [SIZES[0], SIZES[-1]])
async def test_metrics_and_health_take_a_constant_number_of_statements(
    store: PostgresStore, postgres_url: str, counter: Counter, messages: int, keys: int
) -> None:
    epochs = await filled(store, postgres_url, messages, keys)
    blocked = Dead(error="no", block=True)
    await store.writes.settle(epochs, [Decision(message, blocked, "x") for message in await read(store, epochs)])
    # Statistics, lanes, relays and overrides.
    with counter.expecting(4):
        seen = await SnapshotCache(store).get()
    assert seen.overview is not None
    assert seen.overview.blocked == messages
