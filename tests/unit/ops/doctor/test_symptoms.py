"""Symptoms in a store of this process, and the cause that each check reports."""

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from shutil import copyfile

import pytest

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.diagnosis import CheckResult
from pillarbox.core.event import Event
from pillarbox.core.outcome import Dead, Retry
from pillarbox.core.store import EVERYWHERE, ForcedBreakerState
from pillarbox.ops import blocked_keys, busiest_keys
from pillarbox.ops.doctor import symptoms
from pillarbox.ops.settings import Settings
from pillarbox.record import Outbox
from pillarbox.stores.memory import MemoryStore
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.conformance.events import at
from pillarbox.testing.conformance.lane_owner import LONG, Owner

Record = Callable[..., None]


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def record(store: MemoryStore) -> Record:
    def write(*ids: str, key: str | None = None) -> None:
        with store.transaction() as transaction:
            Outbox().record(transaction, *(Event("order.placed", {}, event_id=one, key=key) for one in ids))

    return write


@pytest.fixture
async def sqlite_store(tmp_path: Path, sqlite_template: Path) -> AsyncIterator[SqliteStore]:
    """For symptoms that the memory store does not support."""
    copyfile(sqlite_template, tmp_path / "outbox.db")
    store = SqliteStore(tmp_path / "outbox.db")
    yield store
    await store.aclose()


@pytest.fixture
def insert(sqlite_store: SqliteStore, tmp_path: Path) -> Record:
    def write(*ids: str, key: str | None = None) -> None:
        with closing(sqlite3.connect(tmp_path / "outbox.db")) as connection, connection:
            connection.execute("BEGIN")
            Outbox().record(connection, *(Event("order.placed", {}, event_id=one, key=key) for one in ids))

    return write


async def asked(store: AdminStore, name: str, **variables: str) -> CheckResult:
    checks = symptoms.checks(Settings.load(None, variables), store)
    [check] = [check for check in checks if check.name == f"symptoms.{name}"]
    return await check.ask()


async def test_pending_events_without_a_running_relay_fail(store: MemoryStore, record: Record) -> None:
    assert (await asked(store, "relays")).result == "warn"
    record("a", "b")
    found = await asked(store, "relays")
    assert (found.result, found.message) == ("fail", "2 events are pending, and no relay is running")
    await Owner.of(store, name="till")
    assert await asked(store, "relays") == ("pass", "running: till", "")


async def test_a_running_relay_without_progress_fails(store: MemoryStore) -> None:
    owner = await Owner.of(store, name="till")
    await store.lanes.renew(owner.relay, lease=LONG, stalled="no send begins")
    found = await asked(store, "relays")
    assert (found.result, found.message.endswith("till: no send begins"), "restart" in found.fix) == (
        "fail",
        True,
        True,
    )
    await store.lanes.renew(owner.relay, lease=LONG)
    assert (await asked(store, "relays")).result == "pass"


async def test_pending_events_with_the_relay_disabled_fail(store: MemoryStore, record: Record) -> None:
    record("a")
    found = await asked(store, "relays", PILLARBOX_RELAY__ENABLED="false")
    assert (found.result, "PILLARBOX_RELAY__ENABLED is false here" in found.message) == ("fail", True)
    assert "PILLARBOX_RELAY__ENABLED" in found.fix
    assert found.message.startswith("1 event is pending, ")


async def test_lanes_without_an_owner_are_a_warning(store: MemoryStore) -> None:
    assert (await asked(store, "lanes")).result == "pass"
    owner = await Owner.of(store, limit=10)
    found = await asked(store, "lanes")
    assert (found.result, found.message) == ("warn", "54 of 64 lanes have no running owner")
    await owner.acquire(64)
    assert (await asked(store, "lanes")).result == "pass"


async def test_a_lane_whose_owners_crash_fails(store: MemoryStore) -> None:
    owner = await Owner.of(store)
    for _ in range(symptoms.MANY_CRASHES):
        assert (await asked(store, "lanes")).result == "pass"
        owner = await owner.taken_over()
    assert (await asked(store, "lanes")).result == "fail"


async def test_an_unavailable_destination_fails(store: MemoryStore) -> None:
    owner = await Owner.of(store)
    assert (await asked(store, "destinations")).result == "pass"
    await store.lanes.renew(owner.relay, lease=LONG, breakers={"orders": "open"})
    await store.destinations.report("orders", error="connection refused", next_attempt=5)
    found = await asked(store, "destinations")
    assert (found.result, found.message) == ("fail", "unavailable: orders (open): connection refused")
    await store.lanes.renew(owner.relay, lease=LONG, breakers={"orders": "closed"})
    assert (await asked(store, "destinations")).result == "pass"


@pytest.mark.parametrize("destination", ["orders", EVERYWHERE])
async def test_a_destination_paused_by_an_operator_is_a_warning(store: MemoryStore, destination: str) -> None:
    await store.admin.requests.override(destination, paused=True)
    found = await asked(store, "destinations")
    assert (found.result, "operator" in found.message) == ("warn", True)
    assert "pillarbox audit list --what override" in found.fix
    assert "pillarbox destinations resume" in found.fix
    await store.admin.requests.override(destination, paused=False)
    assert (await asked(store, "destinations")).result == "pass"


@pytest.mark.parametrize("state", ["open", "closed"])
async def test_a_breaker_forced_by_an_operator_is_a_warning(store: MemoryStore, state: ForcedBreakerState) -> None:
    await store.admin.requests.override("orders", breaker=state)
    found = await asked(store, "destinations")
    assert (found.result, found.message) == ("warn", f"overridden by an operator: orders ({state})")
    assert "pillarbox destinations breaker NAME auto" in found.fix


async def test_a_failing_breaker_forced_closed_by_an_operator_fails(store: MemoryStore) -> None:
    await store.admin.requests.override("orders", breaker="closed")
    await store.destinations.report("orders", error="connection refused", next_attempt=5)
    found = await asked(store, "destinations")
    assert (found.result, found.message) == ("fail", "unavailable: orders (forced closed): connection refused")


async def test_an_event_pending_for_long_is_a_warning(store: MemoryStore, record: Record) -> None:
    assert (await asked(store, "backlog")).result == "pass"
    record("a")
    assert (await asked(store, "backlog")).result == "pass"
    with store.transaction() as transaction:
        Outbox().record(transaction, Event("order.placed", {}, available_at=at(-symptoms.LONG_WAIT - 60)))
    assert (await asked(store, "backlog")).result == "warn"


async def test_more_than_five_attempts_are_a_warning_with_the_most_frequent_error(
    sqlite_store: SqliteStore, insert: Record
) -> None:
    owner = await Owner.of(sqlite_store)
    insert("a")
    [message] = await owner.ready()
    for _ in range(5):
        await owner.settle(Retry(delay=0, error="no queue for a"), message)
        [message] = await owner.due()
    assert (await asked(sqlite_store, "attempts")).result == "pass"
    await owner.settle(Retry(delay=0, error="no queue for a"), message)
    found = await asked(sqlite_store, "attempts")
    assert (found.result, found.message.endswith("most often: no queue for …")) == ("warn", True)
    assert "pillarbox events show a" in found.fix


async def test_a_blocked_key_is_a_warning(sqlite_store: SqliteStore, insert: Record) -> None:
    owner = await Owner.of(sqlite_store)
    assert (await asked(sqlite_store, "blocked")).result == "pass"
    insert("a", key="ORDER:42")
    insert("b", key="ORDER:43")
    insert("c", key="ORDER:44")
    for message in await owner.ready():
        error = "too large" if message.event_id == "c" else f"no customer {message.key}"
        await owner.settle(Dead(error=error, block=True), message, to="mail")
    found = await asked(sqlite_store, "blocked")
    assert (found.result, found.message) == (
        "warn",
        "keys are blocked: 2 x order.placed to mail: no customer ORDER:<n>; 1 x order.placed to mail: too large",
    )
    [group, _] = (await blocked_keys.groups(sqlite_store)).groups
    assert f"`pillarbox keys retry --group {group.fingerprint}`" in found.fix


async def test_dead_letters_are_a_warning_with_their_reasons(store: MemoryStore, record: Record) -> None:
    owner = await Owner.of(store)
    assert (await asked(store, "dead")).result == "pass"
    record("1", "2", "3")
    for message in await owner.ready():
        error = "too large" if message.event_id == "2" else f"no customer {message.event_id}"
        await owner.settle(Dead(error=error), message, to="orders")
    found = await asked(store, "dead")
    assert found.result == "warn"
    assert found.message == (
        "dead letters: 2 x order.placed to orders: no customer <n>; 1 x order.placed to orders: too large"
    )
    assert "pillarbox dead retry --group" in found.fix


BROKER = {"PILLARBOX_TRANSPORT": "amqp://app@mq/"}


async def test_a_hot_key_limited_by_round_trips_is_a_warning(sqlite_store: SqliteStore, insert: Record) -> None:
    insert(*(f"calm-{number}" for number in range(busiest_keys.MANY_PENDING - 1)), key="calm")
    assert (await asked(sqlite_store, "busiest_keys", **BROKER)).result == "pass"
    insert(*(f"hot-{number}" for number in range(busiest_keys.MANY_PENDING)), key="hot")
    found = await asked(sqlite_store, "busiest_keys", **BROKER)
    assert (found.result, found.message) == ("warn", "1,000 of the first 10,000 pending events have the key hot")
    assert 'ordering = "pipelined"' in found.fix


async def test_a_hot_key_blocked_by_its_first_event_is_not_reported(sqlite_store: SqliteStore, insert: Record) -> None:
    insert(*(f"hot-{number}" for number in range(busiest_keys.MANY_PENDING + 1)), key="hot")
    owner = await Owner.of(sqlite_store)
    [first, *_] = await owner.ready()
    await owner.settle(Dead(error="no", block=True), first)
    assert (await asked(sqlite_store, "busiest_keys", **BROKER)).result == "pass"


async def test_a_hot_key_passes_with_a_pipelined_destination_or_without_the_option(
    sqlite_store: SqliteStore, insert: Record, tmp_path: Path
) -> None:
    insert(*(f"hot-{number}" for number in range(busiest_keys.MANY_PENDING)), key="hot")
    assert (await asked(sqlite_store, "busiest_keys", PILLARBOX_TRANSPORT="stdout://")).result == "pass"
    (settings := tmp_path / "pillarbox.toml").write_text(
        """
        transports.rabbit.url = "amqp://app@mq/"
        destinations.hot.ordering = "pipelined"
        [[routes]]
        to = ["hot"]
        """
    )
    [check] = [
        one for one in symptoms.checks(Settings.load(settings, {}), sqlite_store) if one.name == "symptoms.busiest_keys"
    ]
    assert (await check.ask()).result == "pass"
