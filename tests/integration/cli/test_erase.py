"""`pillarbox events erase`: no trace of the events of an aggregate is left, on any engine."""

import asyncio
import gzip
import json
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

from pillarbox.admin.admin import AdminStore
from pillarbox.core.message import Held
from pillarbox.core.outcome import DELIVERED, Dead, Retry
from pillarbox.ops.erasure import fingerprint_of
from pillarbox.schemes import open_store
from pillarbox.testing.conformance.lane_owner import Owner
from tests.integration.cli.running import pillarbox

ADA, BOB = "CUSTOMER:ada@example.com", "CUSTOMER:bob"


@pytest.fixture(params=["sqlite_url", "postgres_url", "mariadb_url"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store of each engine with the events of two customers in every state, under several keys."""
    found: str = request.getfixturevalue(request.param)
    events = [
        {
            "event_type": "customer.changed",
            "event_id": f"{name}-{state}",
            "aggregate_type": "CUSTOMER",
            "aggregate_id": customer.partition(":")[2],
            "key": f"{name}-{state}" if state != "ready" else None,
            "payload": {"email": f"{name}@example.com"},
        }
        for name, customer in (("ada", ADA), ("bob", BOB))
        for state in ("sent", "dead", "retry", "parked", "ready")
    ]
    lines = "".join(json.dumps({name: value for name, value in one.items() if value}) + "\n" for one in events)
    (tmp_path / "events.ndjson").write_text(lines)
    done = pillarbox("record", "--ndjson", str(tmp_path / "events.ndjson"), PILLARBOX_STORE=found)
    assert done.returncode == 0, done.stderr
    asyncio.run(settle(found))
    return found


async def settle(url: str) -> None:
    store = open_store(url)
    owner = await Owner.of(store)
    for message in await owner.ready(limit=100):
        match message.event_id.partition("-")[2]:
            case "sent":
                await owner.settle(Retry(delay=0, error=f"no {message.aggregate_id}"), message, to="crm")
            case "dead":
                await owner.settle(Dead(error=f"no {message.aggregate_id}"), message, to="crm")
            case "retry":
                await owner.settle(Retry(delay=600, error=f"no {message.aggregate_id}"), message, to="crm")
            case "parked":
                await owner.hold(Held.PARKED, message, to="crm")
            case _:
                pass
    await owner.settle(DELIVERED, *(one for one in await owner.due() if one.event_id.endswith("sent")), to="crm")
    await store.lanes.release(owner.relay)
    await store.aclose()


async def everything(url: str) -> str:
    """All rows of all tables, as text."""
    store: AdminStore = open_store(url)
    shown = []
    for name in ("ada", "bob"):
        for state in ("sent", "dead", "retry", "parked", "ready"):
            shown.append(str(await store.admin.events.show(f"{name}-{state}")))
    audit = await store.admin.audit.list(limit=100)
    await store.aclose()
    return "".join(shown) + str([entry for entry in audit.entries if entry.what == "erase"])


def test_all_events_of_an_aggregate_are_erased(url: str) -> None:
    counted = pillarbox("events", "erase", "--aggregate", ADA, "--dry-run", "--json", PILLARBOX_STORE=url)
    assert json.loads(counted.stdout) == {
        "pending": 3,
        "history": 1,
        "dead_letters": 1,
        "archived": 0,
        "unreadable": 0,
        "requested": 0,
        "dry_run": True,
    }
    assert "ada@example.com" in asyncio.run(everything(url))
    left = pillarbox("events", "erase", "--aggregate", ADA, "--yes", PILLARBOX_STORE=url)
    assert (left.returncode, "3 events left" in left.stderr) == (1, True), left.stderr
    assert "no relay is running" in left.stderr
    assert "erased 0 pending events, 1 delivered event, 1 dead letter" in left.stdout
    relay = pillarbox("relay", "--until-empty", PILLARBOX_STORE=url, PILLARBOX_TRANSPORT="stdout://")
    assert "ada" not in relay.stdout, relay.stderr
    stored = asyncio.run(everything(url))
    assert "ada@example.com" not in stored
    assert "bob" in stored
    assert fingerprint_of(ADA) in stored  # of the audit
    again = pillarbox("events", "erase", "--aggregate", ADA, "--yes", PILLARBOX_STORE=url)
    assert (again.returncode, "has no events" in again.stderr) == (4, True)


@pytest.mark.parametrize("name", ["old.ndjson", "old.ndjson.gz"])
def test_archives_are_rewritten_without_the_aggregate(sqlite_url: str, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    lines = [
        json.dumps({"event_id": number, "aggregate_type": "CUSTOMER", "aggregate_id": one}) + "\n"
        for number, one in enumerate(("ada@example.com", "bob", "ada@example.com", None))
    ]
    batches = ["".join(lines[:2]).encode(), "".join(lines[2:]).encode()]
    path.write_bytes(b"".join(gzip.compress(one) for one in batches) if path.suffix == ".gz" else b"".join(batches))
    link = tmp_path / f"link-{name}"
    link.symlink_to(path)
    done = erase_from(link, sqlite_url)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["archived"] == 2
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        assert file.readlines() == [lines[1], lines[3]]
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []


def erase_from(archive: Path, store: str) -> subprocess.CompletedProcess[str]:
    return pillarbox(
        "events", "erase", "--aggregate", ADA, "--archive", str(archive), "--yes", "--json", PILLARBOX_STORE=store
    )


def test_a_line_that_a_crash_cut_off_is_named(sqlite_url: str, tmp_path: Path) -> None:
    path = tmp_path / "old.ndjson"
    line = json.dumps({"event_id": "1", "aggregate_type": "CUSTOMER", "aggregate_id": "ada@example.com"})
    path.write_text(f"{line}\n{line[:-3]}")
    done = erase_from(path, sqlite_url)
    assert (done.returncode, "line 2 is no event and kept" in done.stderr) == (1, True), done.stderr
    assert (json.loads(done.stdout)["archived"], json.loads(done.stdout)["unreadable"]) == (1, 1)
    assert path.read_text() == line[:-3]


def test_an_archive_with_nothing_but_an_unreadable_line_is_not_confirmed_and_not_audited(
    sqlite_url: str, tmp_path: Path
) -> None:
    path = tmp_path / "old.ndjson"
    path.write_text("not JSON\n")
    command = ("events", "erase", "--aggregate", ADA, "--archive", str(path))
    # Without --yes: there is no terminal for a confirmation.
    done = pillarbox(*command, PILLARBOX_STORE=sqlite_url)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"pillarbox: {path}: line 1 is no event and kept")
    assert "There is no terminal" not in done.stderr
    assert pillarbox(*command, "--yes", PILLARBOX_STORE=sqlite_url).returncode == 1
    audit = pillarbox("audit", "list", "--json", PILLARBOX_STORE=sqlite_url)
    assert json.loads(audit.stdout)["audit"] == []


def test_a_blank_line_of_an_archive_is_readable(sqlite_url: str, tmp_path: Path) -> None:
    path = tmp_path / "old.ndjson"
    line = json.dumps({"event_id": "1", "aggregate_type": "CUSTOMER", "aggregate_id": "ada@example.com"})
    path.write_text(f"\n{line}\n\n")
    done = erase_from(path, sqlite_url)
    assert (done.returncode, done.stderr) == (0, "")
    assert (json.loads(done.stdout)["archived"], json.loads(done.stdout)["unreadable"]) == (1, 0)


def test_a_broken_archive_is_refused_before_anything_is_erased(sqlite_url: str, tmp_path: Path) -> None:
    path = tmp_path / "old.ndjson.gz"
    whole = gzip.compress(b"x" * 10_000)
    path.write_bytes(whole[:14] + b"\xff\xff\xff" + whole[17:])
    done = erase_from(path, sqlite_url)
    assert (done.returncode, "cannot be read as an archive" in done.stderr) == (2, True), done.stderr


def test_a_colon_in_the_type_is_escaped(sqlite_url: str) -> None:
    for kind, one in (("shop:CUSTOMER", "9"), ("shop", "CUSTOMER:9")):
        event = ("customer.changed", "{}", "--aggregate-type", kind, "--aggregate-id", one)
        assert pillarbox("record", *event, PILLARBOX_STORE=sqlite_url).returncode == 0
    for text in ("shop\\:CUSTOMER:9", "shop:CUSTOMER:9"):
        done = pillarbox("events", "erase", "--aggregate", text, "--dry-run", "--json", PILLARBOX_STORE=sqlite_url)
        assert json.loads(done.stdout)["pending"] == 1
        listed = pillarbox("events", "list", "--aggregate", text, "--json", PILLARBOX_STORE=sqlite_url)
        assert len(json.loads(listed.stdout)["events"]) == 1


def test_the_audit_has_the_hash_of_the_escaped_text(sqlite_url: str) -> None:
    event = ("customer.changed", "{}", "--aggregate-type", "App\\shop:CUSTOMER", "--aggregate-id", "9")
    assert pillarbox("record", *event, PILLARBOX_STORE=sqlite_url).returncode == 0
    erased = r"App\shop\:CUSTOMER:9"
    pillarbox("events", "erase", "--aggregate", erased, "--yes", PILLARBOX_STORE=sqlite_url)
    [entry] = json.loads(pillarbox("audit", "list", "--json", PILLARBOX_STORE=sqlite_url).stdout)["audit"]
    escaped = r"App\\shop\:CUSTOMER:9"
    assert entry["detail"]["aggregate_sha256"] == sha256(escaped.encode()).hexdigest()
    assert fingerprint_of(erased) == fingerprint_of(escaped)


@pytest.mark.parametrize("aggregate", ["CUSTOMER", "CUSTOMER:", ":42"])
def test_one_aggregate_must_be_named(sqlite_url: str, aggregate: str) -> None:
    done = pillarbox("events", "erase", "--aggregate", aggregate, "--yes", PILLARBOX_STORE=sqlite_url)
    assert (done.returncode, "is not one aggregate" in done.stderr) == (2, True)
