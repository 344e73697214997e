"""`pillarbox dead edit`: from a file, from a pipe, in an editor."""

import json
import stat
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from pillarbox.core.event import Event
from pillarbox.core.outcome import Dead
from tests.integration.cli.conftest import Stock
from tests.integration.cli.running import environment, pillarbox
from tests.integration.cli.terminal import at_terminal

OLD = b'{"id":1,"price":"free"}'
NEW = b'{"id": 1, "price": 1.10}'


def add_dead_letter(stock: Stock) -> Stock:
    stock.record(
        Event("order.placed", json.loads(OLD), event_id="bad", key="k", headers={"tenant": "acme", "debug": "1"}),
        Event("order.placed", {}, event_id="stuck", key="s"),
    )
    stock.settle(bad=(Dead(error="price"), "orders"), stuck=(Dead(error="no", block=True), "orders"))
    return stock


@pytest.fixture
def spoilt(stock: Stock) -> Stock:
    """A dead letter with an invalid price, on each engine."""
    return add_dead_letter(stock)


@pytest.fixture
def one(sqlite_url: str) -> Stock:
    """The same on SQLite, for tests that do not depend on the engine."""
    return add_dead_letter(Stock(sqlite_url))


@pytest.fixture
def corrected(tmp_path: Path) -> str:
    (tmp_path / "corrected.json").write_bytes(NEW)
    return str(tmp_path / "corrected.json")


def content(stock: Stock) -> tuple[bytes, dict[str, str]]:
    """Payload and headers of the pending event or the dead letter."""
    [(payload, headers)] = [
        *stock.ask("SELECT payload, headers FROM outbox_message WHERE event_id = 'bad'"),
        *stock.ask("SELECT payload, headers FROM outbox_dead_letter WHERE event_id = 'bad'"),
    ]
    return bytes(payload), headers if isinstance(headers, dict) else json.loads(headers)


def test_a_dead_letter_is_retried_with_the_payload_of_a_file(spoilt: Stock, corrected: str, tmp_path: Path) -> None:
    before = tmp_path / "before.json"
    done = pillarbox(
        "dead", "edit", "bad", "--payload", corrected, "--header", "tenant=umbrella", "--remove-header", "debug",
        "--keep", str(before), "--yes", "--json", PILLARBOX_STORE=spoilt.url,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    change = {
        "old": {"sha256": sha256(OLD).hexdigest(), "bytes": len(OLD)},
        "new": {"sha256": sha256(NEW).hexdigest(), "bytes": len(NEW)},
    }
    dead_letter = answer.pop("dead_letter_id")
    assert answer == {
        "event_id": "bad",
        "destination": "orders",
        "payload": change,
        "headers": {"set": ["tenant"], "removed": ["debug"]},
        "changed": True,
        "done": True,
        "dry_run": False,
    }
    assert spoilt.states("bad") == ["PENDING"]
    assert content(spoilt) == (NEW, {"tenant": "umbrella", "amended": sha256(OLD).hexdigest()})
    kept = json.loads(before.read_text())
    assert (kept["dead_letter_id"], kept["payload"], kept["headers"]) == (
        dead_letter,
        json.loads(OLD),
        {"tenant": "acme", "debug": "1"},
    )
    audit = json.loads(pillarbox("audit", "list", "--what", "edit", "--json", PILLARBOX_STORE=spoilt.url).stdout)
    [entry] = audit["audit"]
    assert (entry["subject"], entry["count"], entry["detail"]["payload"]) == ("bad", 1, change)
    assert "free" not in json.dumps(entry)


def test_the_payload_can_come_from_a_pipe(one: Stock) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pillarbox", "dead", "edit", "bad", "--payload", "-", "--yes"],
        env=environment({"PILLARBOX_STORE": one.url}),
        input=NEW,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, content(one)[0]) == (0, NEW), done.stderr


def editor(folder: Path, script: str) -> str:
    """An editor that runs a script on its file."""
    path = folder / "editor"
    path.write_text(f"#!{sys.executable}\nimport sys, pathlib\nfile = pathlib.Path(sys.argv[1])\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_an_editor_shows_indented_json_and_stores_it_compact(one: Stock, tmp_path: Path) -> None:
    change = "text = file.read_text(); assert '\\n  ' in text; file.write_text(text.replace('\"free\"', '2'))"
    shown = at_terminal("dead", "edit", "bad", typed="y\n", EDITOR=editor(tmp_path, change), PILLARBOX_STORE=one.url)
    assert shown.returncode == 0, shown.screen
    assert "not kept" in shown.screen
    assert content(one)[0] == b'{"id":1,"price":2}'


def test_an_unchanged_edit_changes_nothing(one: Stock, tmp_path: Path) -> None:
    shown = at_terminal("dead", "edit", "bad", EDITOR=editor(tmp_path, "pass"), PILLARBOX_STORE=one.url)
    assert (shown.returncode, "no changes" in shown.screen) == (0, True), shown.screen
    assert one.states("bad") == ["FAILED"]


def test_a_dry_run_shows_the_changes(one: Stock, corrected: str) -> None:
    done = pillarbox("dead", "edit", "bad", "--payload", corrected, "--dry-run", PILLARBOX_STORE=one.url)
    assert (done.returncode, "another payload (24 bytes instead of 23)" in done.stdout) == (0, True)
    assert (one.states("bad"), content(one)[0]) == (["FAILED"], OLD)
    assert one.ask("SELECT what FROM outbox_audit") == []


def test_without_a_terminal_yes_is_required(one: Stock, corrected: str) -> None:
    for arguments in (["--payload", corrected], []):
        done = pillarbox("dead", "edit", "bad", *arguments, PILLARBOX_STORE=one.url)
        assert done.returncode == 2
    assert one.states("bad") == ["FAILED"]


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["--payload", "/dev/null"], "not JSON"),
        (["--header", "tenant"], "NAME=VALUE"),
        (["--remove-header", "other"], "no header 'other'"),
    ],
)
def test_an_invalid_payload_is_rejected(one: Stock, arguments: list[str], reported: str) -> None:
    done = pillarbox("dead", "edit", "bad", *arguments, "--yes", PILLARBOX_STORE=one.url)
    assert (done.returncode in (1, 2), reported in done.stderr) == (True, True), done.stderr
    assert one.states("bad") == ["FAILED"]


def test_a_too_large_payload_is_rejected(one: Stock, corrected: str) -> None:
    done = pillarbox(
        "--set", "record.max_payload=20", "dead", "edit", "bad", "--payload", corrected, "--yes",
        PILLARBOX_STORE=one.url,
    )  # fmt: skip
    assert (done.returncode, "max_payload" in done.stderr) == (1, True), done.stderr


def test_an_existing_file_is_not_overwritten(one: Stock, corrected: str) -> None:
    arguments = ["--payload", corrected, "--keep", corrected, "--yes"]
    done = pillarbox("dead", "edit", "bad", *arguments, PILLARBOX_STORE=one.url)
    assert (done.returncode, Path(corrected).read_bytes()) == (2, NEW)
    assert one.states("bad") == ["FAILED"]


def test_one_of_several_dead_letters_must_be_chosen(one: Stock, corrected: str) -> None:
    one.record(Event("order.placed", {}, event_id="bad"))
    one.settle(bad=(Dead(error="again"), "mail"))
    arguments = ["dead", "edit", "bad", "--payload", corrected, "--yes"]
    several = pillarbox(*arguments, PILLARBOX_STORE=one.url)
    assert (several.returncode, "--dead-letter" in several.stderr) == (2, True)
    assert pillarbox(*arguments, "--destination", "mail", PILLARBOX_STORE=one.url).returncode == 0
    assert one.ask("SELECT destination FROM outbox_dead_letter") == [("orders",)]


def test_a_dead_letter_whose_event_is_pending_stays(one: Stock, corrected: str) -> None:
    one.record(Event("order.placed", {}, event_id="bad", destination="orders"))
    done = pillarbox("dead", "edit", "bad", "--payload", corrected, "--yes", PILLARBOX_STORE=one.url)
    assert (done.returncode, "already pending" in done.stderr) == (1, True)


@pytest.mark.parametrize(("event_id", "reported"), [("unknown", "no such dead letter"), ("stuck", "blocks its key")])
def test_an_unknown_dead_letter_is_not_found(one: Stock, corrected: str, event_id: str, reported: str) -> None:
    done = pillarbox("dead", "edit", event_id, "--payload", corrected, "--yes", PILLARBOX_STORE=one.url)
    assert (done.returncode, reported in done.stderr) == (4, True), done.stderr
