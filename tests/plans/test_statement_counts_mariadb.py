"""On MariaDB the number of statements does not depend on the number of messages, lanes or keys: counted, not timed."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from pillarbox.core.fetch import Due, NextInQueues, Ready
from pillarbox.core.lane import Epochs, RelayRegistration, epochs_of
from pillarbox.core.message import Held, KeyQueue, Message
from pillarbox.core.outcome import DELIVERED, Dead, Decision, Outcome, Resolved, Retry, Split
from pillarbox.stores.mariadb import MariaDBStore
from tests.integration.mariadb.session import Session

SIZES = [(1, 1), (10, 1), (10, 10), (500, 1), (500, 500)]
"""Messages and keys; 500 keys spread over all 64 lanes, one key is one lane."""
MIXED: list[Outcome] = [DELIVERED, Retry(delay=0, error="no"), Dead(error="no"), Dead(error="no", block=True)]
FENCED = 3
"""The statements of every write: begin, lock the lanes, commit."""


class Counted(MariaDBStore):
    """A store that tells how many statements the server got from it."""

    async def sent(self, awaited: Any) -> tuple[int, Any]:
        before = await self._questions()
        result = await awaited
        return await self._questions() - before - len(self._open()), result

    def _open(self) -> list[Any]:
        return [connection for connection in self._connections if connection._connection is not None]

    async def _questions(self) -> int:
        total = 0
        for connection in self._open():
            [(_, count)] = await connection.fetch("SHOW SESSION STATUS LIKE 'Questions'")
            total += int(count)
        return total


@pytest.fixture
async def store(mariadb_url: str) -> AsyncIterator[Counted]:
    store = Counted(mariadb_url)
    for connection in store._connections:
        await connection.fetch("SELECT 1")
    yield store
    await store.aclose()


async def filled(store: Counted, url: str, messages: int, keys: int) -> tuple[Epochs, list[Message]]:
    async with Session(url) as sql:
        await sql.insert(messages, key=f"concat('key ', seq % {keys})")
    await store.lanes.join(RelayRegistration(id="a"), lease=60)
    epochs = epochs_of(await store.lanes.acquire("a", limit=64))
    return epochs, await store.messages.fetch(Ready(lanes=list(epochs)))


@pytest.mark.parametrize(("messages", "keys"), SIZES)
async def test_fetching_takes_one_statement_and_settling_two_more_than_the_fence(
    store: Counted, mariadb_url: str, messages: int, keys: int
) -> None:
    epochs, found = await filled(store, mariadb_url, messages, keys)
    assert len(found) == messages
    assert (await store.sent(store.messages.fetch(Ready(lanes=list(epochs)))))[0] == 1
    sent, settled = await store.sent(store.writes.settle(epochs, [Decision(one, DELIVERED, "x") for one in found]))
    assert settled.count == messages
    assert sent == FENCED + 2


@pytest.mark.parametrize(("messages", "keys"), SIZES[1:])
async def test_a_batch_of_every_outcome_takes_a_constant_number(
    store: Counted, mariadb_url: str, messages: int, keys: int
) -> None:
    epochs, found = await filled(store, mariadb_url, messages, keys)
    decisions = [Decision(message, MIXED[n % len(MIXED)], "x") for n, message in enumerate(found)]
    sent, settled = await store.sent(store.writes.settle(epochs, decisions))
    assert settled.count == messages
    assert sent == FENCED + 10
    assert (await store.sent(store.messages.fetch(Due(lanes=list(epochs)))))[0] == 1


@pytest.mark.parametrize(("messages", "keys"), SIZES)
async def test_holding_splitting_and_counting_take_a_constant_number(
    store: Counted, mariadb_url: str, messages: int, keys: int
) -> None:
    epochs, found = await filled(store, mariadb_url, messages, keys)
    resolved = [Resolved(message, "") for message in found]
    sent, _ = await store.sent(store.writes.count_attempt(epochs, resolved, error="down"))
    assert sent == FENCED + 4
    sent, _ = await store.sent(store.writes.split(epochs, [Split(message, ("x", "y")) for message in found]))
    assert sent == FENCED + 7
    copies = [message for message in found if message.destination == ""]
    sent, _ = await store.sent(store.writes.hold(epochs, [Resolved(one.to("x"), "x") for one in copies], Held.PARKED))
    assert sent == FENCED + 4


@pytest.mark.parametrize(("messages", "keys"), SIZES)
async def test_the_next_messages_of_any_number_of_queues_take_five_statements(
    store: Counted, mariadb_url: str, messages: int, keys: int
) -> None:
    epochs, found = await filled(store, mariadb_url, messages, keys)
    await store.writes.hold(epochs, [Resolved(message, "x") for message in found], Held.WAITING)
    queues = list({KeyQueue(message.lane, str(message.key), "x"): None for message in found})
    sent, fetched = await store.sent(store.messages.fetch(NextInQueues(queues=queues)))
    assert len(fetched) == messages
    # The isolation level, begin, what holds the queues back, the messages, commit.
    assert sent == 5
