"""`pillarbox dead broker` as a person and as a script use it, on a real RabbitMQ."""

import getpass
import json
import signal
import subprocess
import sys

import pika
import pytest

from pillarbox.ops.requeue import WINDOW
from tests.integration.cli.conftest import Stock
from tests.integration.cli.graveyard import Graveyard
from tests.integration.cli.running import environment, pillarbox
from tests.integration.cli.terminal import at_terminal
from tests.integration.consume.broker import publish, ready
from tests.integration.consume.strange import FOUND, Strange, text
from tests.integration.rabbitmq.consumer import channel
from tests.servers.ports import free_port
from tests.servers.waiting import wait_until

# -- list -------------------------------------------------------------------------------------------------------------


def test_the_list_has_the_details_of_each_dead_letter(yard: Graveyard) -> None:
    yard.bury("e1", "e2")
    first, second = yard.told("list")["dead_letters"]
    assert second["event_id"] == "e2"
    assert first == {
        "queue": yard.dead,
        "event_id": "e1",
        "event_type": "order.placed",
        "reason": "ValueError: no address",
        "attempts": 7,
        "dead_lettered_at": None,
        "original_queue": yard.work,
        "delivery_count": 0,
        "size": 12,
    }


def test_listing_changes_nothing(yard: Graveyard) -> None:
    ids = [f"e{n}" for n in range(60)]
    yard.bury(*ids)
    for limit, shown in (("5", 5), ("60", 60), ("100", 60)):
        found = yard.told("list", "--limit", limit)["dead_letters"]
        assert [letter["event_id"] for letter in found] == ids[:shown]
        yard.wait_for(yard.dead, 60)
    assert yard.take(yard.dead) == ids


def test_a_message_dead_lettered_by_the_broker_has_its_reason(yard: Graveyard) -> None:
    with channel(yard.url) as broker:
        dying = {"x-message-ttl": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": yard.dead}
        broker.queue_declare(f"{yard.work}.quarantine", durable=True, arguments=dying)  # removed with the others
        order = pika.BasicProperties(message_id="e1", type="order.placed")
        broker.basic_publish("", f"{yard.work}.quarantine", b"{}", order)
    yard.wait_for(yard.dead, 1)
    [letter] = yard.told("list")["dead_letters"]
    assert (letter["reason"], letter["attempts"], letter["original_queue"]) == ("expired", 1, f"{yard.work}.quarantine")
    assert letter["dead_lettered_at"].endswith("Z")


def test_the_payload_is_shown_on_request(yard: Graveyard) -> None:
    yard.bury("e1")
    assert "payload" not in yard.told("list")["dead_letters"][0]
    yard.wait_for(yard.dead, 1)
    assert yard.told("list", "--payload")["dead_letters"][0]["payload"] == {"id": "e1"}


def test_the_list_in_a_pipe_has_tabs(yard: Graveyard) -> None:
    yard.bury("e1", body=b"two\nlines")
    names, line = yard.run("dead", "broker", "list", "--payload").stdout.splitlines()
    assert names.split("\t")[-2:] == ["reason", "payload"]
    assert line.split("\t")[2:] == ["e1", "order.placed", yard.work, "7", "9", "ValueError: no address", "two\\nlines"]


def test_frequent_listing_warns_of_a_delivery_limit(yard: Graveyard) -> None:
    yard.bury("e1")
    with channel(yard.url) as broker:
        for _ in range(10):
            wait_until(lambda: broker.basic_get(yard.dead)[0] is not None, bound=90, what="the letter comes")
            broker.basic_recover(requeue=True)
    yard.wait_for(yard.dead, 1)
    done = yard.run("dead", "broker", "list")
    assert (done.returncode, "delivery-limit" in done.stderr) == (0, True), done.stdout


def test_an_empty_queue_is_not_an_error(yard: Graveyard) -> None:
    done = yard.run("dead", "broker", "list")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "there are no dead letters on the broker\n")
    assert yard.told("list") == {"dead_letters": []}


def test_an_unknown_queue_is_not_found(yard: Graveyard) -> None:
    done = yard.run("dead", "broker", "list", "--queue", "nowhere")
    assert (done.returncode, done.stderr) == (4, "pillarbox: the broker has no queue 'nowhere'\n")


def test_any_message_can_be_listed(yard: Graveyard) -> None:
    yard.bury_strange(*FOUND)
    letters = yard.told("list", "--payload", "--limit", "100")["dead_letters"]
    assert len(letters) == len(FOUND)
    assert letters[-1]["event_id"] is None
    yard.wait_for(yard.dead, len(FOUND))
    assert yard.run("dead", "broker", "list", "--limit", "100").returncode == 0


# -- requeue ----------------------------------------------------------------------------------------------------------


def test_any_message_is_requeued_or_reported(yard: Graveyard) -> None:
    nowhere = {(b"pillarbox-queue", text(name)) for name in (b"x" * 300, b"\xed\xa0\x80", b"")}
    stays = [Strange({"message_id": b"stays"}, (header,)) for header in sorted(nowhere)]
    moves = [Strange(one.properties, ((b"pillarbox-queue", text(yard.work.encode())),)) for one in stays]
    yard.bury_strange(*stays, *FOUND, *moves)
    answer = yard.told("requeue", "--all", "--yes", code=1)
    assert answer["moved"] == {yard.work: len(moves)}
    assert sum(map(len, answer["skipped"].values())) == len(stays) + len(FOUND)
    yard.wait_for(yard.dead, len(stays) + len(FOUND))
    assert yard.told("requeue", "--queue", yard.dead, "--all", "--to", yard.work, "--yes")["done"] == len(stays + FOUND)
    yard.wait_for(yard.work, len(stays + FOUND + moves))


def test_a_dead_letter_selected_by_id_is_requeued_without_confirmation(yard: Graveyard) -> None:
    yard.bury("e1", "e2", "e3")
    assert yard.told("requeue", "--event-id", "e2") == {
        "matched": 1,
        "done": 1,
        "moved": {yard.work: 1},
        "skipped": {},
        "missing": [],
        "dry_run": False,
    }
    yard.wait_for(yard.dead, 2)
    assert (yard.take(yard.work), yard.take(yard.dead)) == (["e2"], ["e1", "e3"])


def test_a_requeue_is_audited(yard: Graveyard, sqlite_url: str) -> None:
    yard.bury("e1", "e2")
    done = yard.run("dead", "broker", "requeue", "--all", "--yes", PILLARBOX_STORE=sqlite_url)
    assert (done.returncode, done.stderr) == (0, "")
    entries = Stock(sqlite_url).ask("SELECT who, what, subject, count, detail FROM outbox_audit")
    [(who, what, subject, count, detail)] = entries
    assert (who, what, subject, count) == (getpass.getuser(), "requeue", yard.dead, 2)
    assert json.loads(detail) == {"moved": {yard.work: 2}, "left": 0}


def test_a_requeue_works_without_a_store(yard: Graveyard) -> None:
    yard.bury("e1")
    done = yard.run("dead", "broker", "requeue", "--all", "--yes")
    assert (done.returncode, "the action is not in the audit log: there is no file" in done.stderr) == (0, True)
    assert yard.take(yard.work) == ["e1"]
    assert [file.name for file in yard.folder.iterdir()] == ["pillarbox.toml"]


def test_a_limit_requeues_the_first_messages(yard: Graveyard) -> None:
    yard.bury(*(f"e{n}" for n in range(10)))
    done = yard.run("dead", "broker", "requeue", "--limit", "4", "--yes")
    assert (done.returncode, done.stdout) == (0, f"requeued: 4 dead letters to {yard.work} (4)\n"), done.stderr
    yard.wait_for(yard.dead, 6)
    assert yard.take(yard.work) == ["e0", "e1", "e2", "e3"]
    assert yard.take(yard.dead) == [f"e{n}" for n in range(4, 10)]


def test_many_dead_letters_are_requeued_in_order(yard: Graveyard) -> None:
    ids = yard.bury_many(4 * WINDOW)
    assert yard.told("requeue", "--all", "--yes")["done"] == 4 * WINDOW
    assert yard.take(yard.work) == ids
    assert ready(yard.url, yard.dead) == 0


def test_one_dead_letter_is_found_among_many(yard: Graveyard) -> None:
    *others, last = yard.bury_many(4 * WINDOW)
    assert yard.told("requeue", "--event-id", last)["done"] == 1
    yard.wait_for(yard.dead, len(others))
    assert (yard.take(yard.work), yard.take(yard.dead)) == ([last], others)


def test_a_killed_requeue_loses_nothing(yard: Graveyard) -> None:
    ids = yard.bury_many(2000)
    process = subprocess.Popen(
        [sys.executable, "-m", "pillarbox", "dead", "broker", "requeue", "--all", "--yes"],
        env=environment({"PILLARBOX_TRANSPORTS__RABBIT__URL": yard.url}),
        cwd=yard.folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with process:
        try:
            wait_until(lambda: ready(yard.url, yard.work) > 200, bound=90, what="some are moved")
        finally:
            process.kill()
    assert process.returncode == -signal.SIGKILL
    moved = ready(yard.url, yard.work)
    wait_until(lambda: ready(yard.url, yard.dead) >= 2000 - moved, bound=90, what="what was in hand is back")
    there, here = yard.take(yard.work), yard.take(yard.dead)
    assert 200 < len(there) < 2000
    assert set(there) | set(here) == set(ids)
    assert len(there) + len(here) <= 2001  # one may be in both


def test_dead_letters_of_a_deleted_queue_stay(yard: Graveyard) -> None:
    yard.bury("gone", headers={"pillarbox-queue": "nowhere"})
    yard.bury("e1")
    done = yard.run("dead", "broker", "requeue", "--all", "--yes")
    assert (done.returncode, done.stdout) == (1, f"requeued: 1 dead letter to {yard.work} (1)\n")
    assert "skipped 1 dead letter (gone): queue 'nowhere': there is no such queue: NO_ROUTE" in done.stderr
    yard.wait_for(yard.dead, 1)
    assert (yard.take(yard.work), yard.take(yard.dead)) == (["e1"], ["gone"])


def test_a_dead_letter_without_origin_needs_a_target(yard: Graveyard) -> None:
    yard.bury("e1", headers={})
    done = yard.run("dead", "broker", "requeue", "--event-id", "e1")
    assert (done.returncode, "name one with --to" in done.stderr) == (1, True), done.stderr
    yard.wait_for(yard.dead, 1)
    assert yard.told("requeue", "--queue", yard.dead, "--event-id", "e1", "--to", yard.work)["done"] == 1
    assert yard.take(yard.work) == ["e1"]


def test_too_many_failures_end_the_requeue(yard: Graveyard) -> None:
    yard.bury(*(f"e{n}" for n in range(120)), headers={})
    done = yard.run("dead", "broker", "requeue", "--all", "--yes")
    assert done.returncode == 1
    assert "skipped 100 dead letters (e0, e1, e2, e3, e4, …)" in done.stderr
    assert "20 more were not read" in done.stderr
    yard.wait_for(yard.dead, 120)


def test_a_dry_run_only_counts(yard: Graveyard) -> None:
    yard.bury("e1", "e2", "e3")
    done = yard.run("dead", "broker", "requeue", "--all", "--dry-run")
    assert (done.returncode, done.stdout) == (0, f"would requeue: 3 dead letters to {yard.work} (3)\n"), done.stderr
    yard.wait_for(yard.dead, 3)
    answer = yard.told("requeue", "--limit", "2", "--dry-run")
    assert (answer["matched"], answer["done"], answer["dry_run"]) == (2, 0, True)
    yard.wait_for(yard.dead, 3)
    assert (yard.take(yard.work), yard.take(yard.dead)) == ([], ["e1", "e2", "e3"])


def test_an_unknown_event_is_not_found_and_the_others_are_requeued(yard: Graveyard) -> None:
    yard.bury("e1")
    answer = yard.told("requeue", "--event-id", "e1", "--event-id", "e7", code=4)
    assert (answer["done"], answer["missing"]) == (1, ["e7"])
    assert yard.take(yard.work) == ["e1"]


def test_without_a_terminal_yes_is_required(yard: Graveyard) -> None:
    yard.bury("e1")
    done = yard.run("dead", "broker", "requeue", "--all")
    assert (done.returncode, "--yes" in done.stderr) == (2, True)
    assert ready(yard.url, yard.dead) == 1


@pytest.mark.parametrize(("typed", "code", "left"), [("y\n", 0, 0), ("n\n", 1, 2)])
def test_on_a_terminal_the_count_must_be_confirmed(
    yard: Graveyard, typed: str, code: int, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    yard.bury("e1", "e2")
    monkeypatch.chdir(yard.folder)
    shown = at_terminal(
        *("dead", "broker", "requeue", "--all"), typed=typed, PILLARBOX_TRANSPORTS__RABBIT__URL=yard.url
    )
    assert (shown.returncode, "Requeue 2 dead letters?" in shown.screen) == (code, True), shown.screen
    assert ("requeueing" in shown.screen) is (code == 0)
    yard.wait_for(yard.dead, left)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--all", "--limit", "3"],
        ["--event-id", "e1", "--all"],
        ["--all", "--to", "orders"],
        ["--queue", "orders.dlq", "--all", "--to", "orders.dlq"],
    ],
    ids=" ".join,
)
def test_a_selection_is_required(arguments: list[str]) -> None:
    done = pillarbox("dead", "broker", "requeue", *arguments, PILLARBOX_TRANSPORT="amqp://127.0.0.1:1/")
    assert (done.returncode, "Usage:" in done.stderr) == (2, True), done.stderr


# -- the broker -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [["list"], ["requeue", "--all", "--yes"]], ids=" ".join)
def test_without_rabbitmq_the_error_names_the_setting(command: list[str]) -> None:
    done = pillarbox("dead", "broker", *command, PILLARBOX_TRANSPORT="stdout://")
    assert (done.returncode, "PILLARBOX_TRANSPORT=amqp://" in done.stderr) == (2, True)


@pytest.mark.parametrize("command", [["list"], ["requeue", "--all", "--yes"]], ids=" ".join)
def test_an_unavailable_broker_is_an_error_of_one_line_without_the_password(
    yard: Graveyard, command: list[str]
) -> None:
    closed = f"amqp://app:canary-password@127.0.0.1:{free_port()}/"
    done = yard.run("dead", "broker", *command, PILLARBOX_TRANSPORTS__RABBIT__URL=closed)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done.stderr
    assert "cannot connect to RabbitMQ at 127.0.0.1" in done.stderr
    assert "tried again" not in done.stderr
    assert "canary-password" not in done.stderr


@pytest.mark.parametrize("command", [["list"], ["requeue", "--all", "--yes"], ["status"]], ids=" ".join)
def test_a_wrong_password_is_never_shown(yard: Graveyard, command: list[str]) -> None:
    wrong = yard.url.replace("guest:guest", "guest:canary-password")
    words = command if command == ["status"] else ["dead", "broker", *command]
    assert yard.run("schema", "apply").returncode == 0
    done = yard.run("--verbose", *words, PILLARBOX_TRANSPORTS__RABBIT__URL=wrong)
    assert "ACCESS_REFUSED" in done.stdout + done.stderr
    assert "canary-password" not in done.stdout + done.stderr


def test_an_unconfigured_queue_can_be_listed_by_name(yard: Graveyard) -> None:
    publish(yard.url, f"{yard.work}.quarantine", "e1")
    done = pillarbox(
        *("dead", "broker", "list", "--queue", f"{yard.work}.quarantine", "--json"), PILLARBOX_TRANSPORT=yard.url
    )
    assert [letter["event_id"] for letter in json.loads(done.stdout)["dead_letters"]] == ["e1"]
