"""Two processes on one file: commits wake the other, a crashed owner is replaced, an old one is fenced."""

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from pillarbox.core.lane import RelaySession
from pillarbox.core.outcome import DELIVERED
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.conformance.lane_owner import Owner, ids
from tests.integration.sqlite.conftest import Shell

INSERT = "INSERT INTO outbox_message (event_id, event_type, payload) VALUES ('%s', 't', '');"
LONG_NAP = 60.0

OWNER = """
import asyncio, sys
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.core.lane import RelayRegistration
from pillarbox.core.fetch import Ready

async def main():
    store = SqliteStore(sys.argv[1])
    await store.lanes.join(RelayRegistration(id="killed"), lease=3600)
    [owned] = await store.lanes.acquire("killed", limit=1)
    if "renew" in sys.argv:
        await store.lanes.renew("killed", lease=3600)
    print(owned.epoch, len(await store.messages.fetch(Ready(lanes=[owned.lane]))), flush=True)
    sys.stdin.readline()

asyncio.run(main())
"""


async def test_a_commit_of_another_process_wakes_the_relay(store: SqliteStore, owner: Owner, shell: Shell) -> None:
    assert await owner.ready() == []
    nap = asyncio.create_task(store.wakeup.wait(LONG_NAP))
    await asyncio.to_thread(shell, INSERT % "a")
    assert await nap is True
    assert ids(await owner.ready()) == ["a"]


async def test_a_killed_owner_is_replaced_when_its_lease_ends(store: SqliteStore, path: Path, shell: Shell) -> None:
    shell(INSERT % "a")
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", OWNER, str(path), stdin=PIPE, stdout=PIPE)
    assert process.stdout is not None
    epoch, in_flight = map(int, (await process.stdout.readline()).split())
    assert in_flight == 1
    successor = await Owner.of(store)
    assert successor.owned == []
    process.kill()
    await process.communicate()
    assert process.returncode == -9
    assert await successor.acquire(1) == []
    assert await store.lanes.renew("killed", lease=0) is not None
    [owned] = await successor.acquire(1)
    assert (owned.epoch, owned.crashes) == (epoch + 1, 1)
    assert ids(await successor.ready()) == ["a"]


@pytest.mark.parametrize("frozen", [False, True])
async def test_the_lane_of_a_killed_process_is_free_at_once(store: SqliteStore, path: Path, frozen: bool) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", OWNER, str(path), "renew", stdin=PIPE, stdout=PIPE
    )
    assert process.stdout is not None
    assert await process.stdout.readline()
    if frozen:
        process.send_signal(signal.SIGSTOP)
    successor = await Owner.of(store)
    session = RelaySession(relay="killed", token="lock")
    assert await store.lanes.ended(successor.relay) == []
    assert await store.lanes.expire([session]) == 0
    assert await successor.acquire(1) == []
    process.kill()
    await process.communicate()
    # It could not clean up: its file exists, and only the lock is gone.
    assert len(list(path.parent.glob(f"{path.name}-relay-*"))) == 1
    assert await store.lanes.ended(successor.relay) == [session]
    assert await successor.acquire(1) == []
    assert await store.lanes.expire([session]) == 1
    [owned] = await successor.acquire(1)
    assert owned.crashes == 1
    assert list(path.parent.glob(f"{path.name}-relay-*")) == []


async def test_an_old_epoch_writes_nothing(store: SqliteStore, path: Path, shell: Shell) -> None:
    stale = await Owner.of(store)
    shell(INSERT % "a")
    [message] = await stale.ready()
    other = SqliteStore(path)
    successor = await stale.taken_over(other)
    settled = await stale.settle(DELIVERED, message)
    assert (settled.count, settled.lost) == (0, frozenset({0}))
    assert (await successor.settle(DELIVERED, message)).count == 1
    await other.aclose()
