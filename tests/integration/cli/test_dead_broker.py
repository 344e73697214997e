"""`pillarbox dead broker` on a real RabbitMQ, as text and as JSON."""

import getpass
import json
import signal
import subprocess
import sys

import pika
import pytest

from pillarbox.ops.requeue import PREFETCH
from tests.integration.cli.conftest import Stock
from tests.integration.cli.running import environment, pillarbox
from tests.integration.cli.terminal import at_terminal
from tests.integration.cli.work_queue import WorkQueue
from tests.integration.consume.broker import publish, ready
from tests.integration.consume.strange import FOUND, Strange, text
from tests.integration.rabbitmq.consumer import channel
from tests.servers.ports import free_port
from tests.servers.waiting import wait_until

# -- list -------------------------------------------------------------------------------------------------------------


def test_the_list_has_the_details_of_each_dead_letter(work_queue: WorkQueue) -> None:
    work_queue.dead_letter("e1", "e2")
    first, second = work_queue.json_output("list")["dead_letters"]
    assert second["event_id"] == "e2"
    assert first == {
        "queue": work_queue.dead,
        "event_id": "e1",
        "event_type": "order.placed",
        "reason": "ValueError: no address",
        "attempts": 7,
        "dead_lettered_at": None,
        "original_queue": work_queue.work,
        "delivery_count": 0,
        "size": 12,
    }


def test_listing_changes_nothing(work_queue: WorkQueue) -> None:
    ids = [f"e{n}" for n in range(60)]
    work_queue.dead_letter(*ids)
    for limit, shown in (("5", 5), ("60", 60), ("100", 60)):
        found = work_queue.json_output("list", "--limit", limit)["dead_letters"]
        assert [dead_letter["event_id"] for dead_letter in found] == ids[:shown]
        work_queue.wait_for(work_queue.dead, 60)
    assert work_queue.take(work_queue.dead) == ids


def test_a_message_dead_lettered_by_the_broker_has_its_reason(work_queue: WorkQueue) -> None:
    with channel(work_queue.url) as broker:
        dying = {"x-message-ttl": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": work_queue.dead}
        broker.queue_declare(f"{work_queue.work}.quarantine", durable=True, arguments=dying)  # removed with the others
        order = pika.BasicProperties(message_id="e1", type="order.placed")
        broker.basic_publish("", f"{work_queue.work}.quarantine", b"{}", order)
    work_queue.wait_for(work_queue.dead, 1)
    [dead_letter] = work_queue.json_output("list")["dead_letters"]
    assert (dead_letter["reason"], dead_letter["attempts"], dead_letter["original_queue"]) == (
        "expired",
        1,
        f"{work_queue.work}.quarantine",
    )
    assert dead_letter["dead_lettered_at"].endswith("Z")


def test_the_payload_is_shown_on_request(work_queue: WorkQueue) -> None:
    work_queue.dead_letter("e1")
    assert "payload" not in work_queue.json_output("list")["dead_letters"][0]
    work_queue.wait_for(work_queue.dead, 1)
    assert work_queue.json_output("list", "--payload")["dead_letters"][0]["payload"] == {"id": "e1"}


def test_the_list_in_a_pipe_has_tabs(work_queue: WorkQueue) -> None:
    work_queue.dead_letter("e1", body=b"two\nlines")
    names, line = work_queue.run("dead", "broker", "list", "--payload").stdout.splitlines()
    assert names.split("\t")[-2:] == ["reason", "payload"]
    assert line.split("\t")[2:] == [
        "e1",
        "order.placed",
        work_queue.work,
        "7",
        "9",
        "ValueError: no address",
        "two\\nlines",
    ]


def test_frequent_listing_warns_of_a_delivery_limit(work_queue: WorkQueue) -> None:
    work_queue.dead_letter("e1")
    with channel(work_queue.url) as broker:
        for _ in range(10):
            wait_until(
                lambda: broker.basic_get(work_queue.dead)[0] is not None, bound=90, what="the dead letter arrives"
            )
            broker.basic_recover(requeue=True)
    work_queue.wait_for(work_queue.dead, 1)
    done = work_queue.run("dead", "broker", "list")
    assert (done.returncode, "delivery-limit" in done.stderr) == (0, True), done.stdout


def test_an_empty_queue_is_not_an_error(work_queue: WorkQueue) -> None:
    done = work_queue.run("dead", "broker", "list")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "there are no dead letters on the broker\n")
    assert work_queue.json_output("list") == {"dead_letters": []}


def test_an_unknown_queue_is_not_found(work_queue: WorkQueue) -> None:
    done = work_queue.run("dead", "broker", "list", "--queue", "nowhere")
    assert (done.returncode, done.stderr) == (4, "pillarbox: the broker has no queue 'nowhere'\n")


def test_any_message_can_be_listed(work_queue: WorkQueue) -> None:
    work_queue.dead_letter_strange(*FOUND)
    listed = work_queue.json_output("list", "--payload", "--limit", "100")["dead_letters"]
    assert len(listed) == len(FOUND)
    assert listed[-1]["event_id"] is None
    work_queue.wait_for(work_queue.dead, len(FOUND))
    assert work_queue.run("dead", "broker", "list", "--limit", "100").returncode == 0


# -- requeue ----------------------------------------------------------------------------------------------------------


def test_any_message_is_requeued_or_reported(work_queue: WorkQueue) -> None:
    nowhere = {(b"pillarbox-queue", text(name)) for name in (b"x" * 300, b"\xed\xa0\x80", b"")}
    stays = [Strange({"message_id": b"stays"}, (header,)) for header in sorted(nowhere)]
    moves = [Strange(one.properties, ((b"pillarbox-queue", text(work_queue.work.encode())),)) for one in stays]
    work_queue.dead_letter_strange(*stays, *FOUND, *moves)
    answer = work_queue.json_output("requeue", "--all", "--yes", code=1)
    assert answer["moved"] == {work_queue.work: len(moves)}
    assert sum(map(len, answer["skipped"].values())) == len(stays) + len(FOUND)
    work_queue.wait_for(work_queue.dead, len(stays) + len(FOUND))
    assert work_queue.json_output("requeue", "--queue", work_queue.dead, "--all", "--to", work_queue.work, "--yes")[
        "done"
    ] == len(stays + FOUND)
    work_queue.wait_for(work_queue.work, len(stays + FOUND + moves))


def test_a_dead_letter_selected_by_id_is_requeued_without_confirmation(work_queue: WorkQueue) -> None:
    work_queue.dead_letter("e1", "e2", "e3")
    assert work_queue.json_output("requeue", "--event-id", "e2") == {
        "matched": 1,
        "done": 1,
        "moved": {work_queue.work: 1},
        "skipped": {},
        "missing": [],
        "dry_run": False,
    }
    work_queue.wait_for(work_queue.dead, 2)
    assert (work_queue.take(work_queue.work), work_queue.take(work_queue.dead)) == (["e2"], ["e1", "e3"])


def test_a_requeue_is_audited(work_queue: WorkQueue, sqlite_url: str) -> None:
    work_queue.dead_letter("e1", "e2")
    done = work_queue.run("dead", "broker", "requeue", "--all", "--yes", PILLARBOX_STORE=sqlite_url)
    assert (done.returncode, done.stderr) == (0, "")
    entries = Stock(sqlite_url).ask("SELECT who, what, subject, count, detail FROM outbox_audit")
    [(who, what, subject, count, detail)] = entries
    assert (who, what, subject, count) == (getpass.getuser(), "requeue", work_queue.dead, 2)
    assert json.loads(detail) == {"moved": {work_queue.work: 2}, "remaining": 0}


def test_a_requeue_works_without_a_store(work_queue: WorkQueue) -> None:
    work_queue.dead_letter("e1")
    done = work_queue.run("dead", "broker", "requeue", "--all", "--yes")
    assert (done.returncode, "the action is not in the audit log: there is no file" in done.stderr) == (0, True)
    assert work_queue.take(work_queue.work) == ["e1"]
    assert [file.name for file in work_queue.folder.iterdir()] == ["pillarbox.toml"]


def test_a_limit_requeues_the_first_messages(work_queue: WorkQueue) -> None:
    work_queue.dead_letter(*(f"e{n}" for n in range(10)))
    done = work_queue.run("dead", "broker", "requeue", "--limit", "4", "--yes")
    assert (done.returncode, done.stdout) == (0, f"requeued: 4 dead letters to {work_queue.work} (4)\n"), done.stderr
    work_queue.wait_for(work_queue.dead, 6)
    assert work_queue.take(work_queue.work) == ["e0", "e1", "e2", "e3"]
    assert work_queue.take(work_queue.dead) == [f"e{n}" for n in range(4, 10)]


def test_many_dead_letters_are_requeued_in_order(work_queue: WorkQueue) -> None:
    ids = work_queue.dead_letter_many(4 * PREFETCH)
    assert work_queue.json_output("requeue", "--all", "--yes")["done"] == 4 * PREFETCH
    assert work_queue.take(work_queue.work) == ids
    assert ready(work_queue.url, work_queue.dead) == 0


def test_one_dead_letter_is_found_among_many(work_queue: WorkQueue) -> None:
    *others, last = work_queue.dead_letter_many(4 * PREFETCH)
    assert work_queue.json_output("requeue", "--event-id", last)["done"] == 1
    work_queue.wait_for(work_queue.dead, len(others))
    assert (work_queue.take(work_queue.work), work_queue.take(work_queue.dead)) == ([last], others)


def test_a_killed_requeue_loses_nothing(work_queue: WorkQueue) -> None:
    ids = work_queue.dead_letter_many(2000)
    process = subprocess.Popen(
        [sys.executable, "-m", "pillarbox", "dead", "broker", "requeue", "--all", "--yes"],
        env=environment({"PILLARBOX_TRANSPORTS__RABBIT__URL": work_queue.url}),
        cwd=work_queue.folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with process:
        try:
            wait_until(lambda: ready(work_queue.url, work_queue.work) > 200, bound=90, what="some are moved")
        finally:
            process.kill()
    assert process.returncode == -signal.SIGKILL
    moved = ready(work_queue.url, work_queue.work)
    wait_until(
        lambda: ready(work_queue.url, work_queue.dead) >= 2000 - moved, bound=90, what="messages in flight are requeued"
    )
    there, here = work_queue.take(work_queue.work), work_queue.take(work_queue.dead)
    assert 200 < len(there) < 2000
    assert set(there) | set(here) == set(ids)
    assert len(there) + len(here) <= 2001  # one may be in both queues


def test_dead_letters_of_a_deleted_queue_stay(work_queue: WorkQueue) -> None:
    work_queue.dead_letter("gone", headers={"pillarbox-queue": "nowhere"})
    work_queue.dead_letter("e1")
    done = work_queue.run("dead", "broker", "requeue", "--all", "--yes")
    assert (done.returncode, done.stdout) == (1, f"requeued: 1 dead letter to {work_queue.work} (1)\n")
    assert "skipped 1 dead letter (gone): queue 'nowhere': there is no such queue: NO_ROUTE" in done.stderr
    work_queue.wait_for(work_queue.dead, 1)
    assert (work_queue.take(work_queue.work), work_queue.take(work_queue.dead)) == (["e1"], ["gone"])


def test_a_dead_letter_without_origin_needs_a_target(work_queue: WorkQueue) -> None:
    work_queue.dead_letter("e1", headers={})
    done = work_queue.run("dead", "broker", "requeue", "--event-id", "e1")
    assert (done.returncode, "name one with --to" in done.stderr) == (1, True), done.stderr
    work_queue.wait_for(work_queue.dead, 1)
    assert (
        work_queue.json_output("requeue", "--queue", work_queue.dead, "--event-id", "e1", "--to", work_queue.work)[
            "done"
        ]
        == 1
    )
    assert work_queue.take(work_queue.work) == ["e1"]


def test_too_many_failures_end_the_requeue(work_queue: WorkQueue) -> None:
    work_queue.dead_letter(*(f"e{n}" for n in range(120)), headers={})
    done = work_queue.run("dead", "broker", "requeue", "--all", "--yes")
    assert done.returncode == 1
    assert "skipped 100 dead letters (e0, e1, e2, e3, e4, …)" in done.stderr
    assert "20 more were not read" in done.stderr
    work_queue.wait_for(work_queue.dead, 120)


def test_a_dry_run_only_counts(work_queue: WorkQueue) -> None:
    work_queue.dead_letter("e1", "e2", "e3")
    done = work_queue.run("dead", "broker", "requeue", "--all", "--dry-run")
    assert (done.returncode, done.stdout) == (0, f"would requeue: 3 dead letters to {work_queue.work} (3)\n"), (
        done.stderr
    )
    work_queue.wait_for(work_queue.dead, 3)
    answer = work_queue.json_output("requeue", "--limit", "2", "--dry-run")
    assert (answer["matched"], answer["done"], answer["dry_run"]) == (2, 0, True)
    work_queue.wait_for(work_queue.dead, 3)
    assert (work_queue.take(work_queue.work), work_queue.take(work_queue.dead)) == ([], ["e1", "e2", "e3"])


def test_an_unknown_event_is_not_found_and_the_others_are_requeued(work_queue: WorkQueue) -> None:
    work_queue.dead_letter("e1")
    answer = work_queue.json_output("requeue", "--event-id", "e1", "--event-id", "e7", code=4)
    assert (answer["done"], answer["missing"]) == (1, ["e7"])
    assert work_queue.take(work_queue.work) == ["e1"]


def test_without_a_terminal_yes_is_required(work_queue: WorkQueue) -> None:
    work_queue.dead_letter("e1")
    done = work_queue.run("dead", "broker", "requeue", "--all")
    assert (done.returncode, "--yes" in done.stderr) == (2, True)
    assert ready(work_queue.url, work_queue.dead) == 1


@pytest.mark.parametrize(("typed", "code", "left"), [("y\n", 0, 0), ("n\n", 1, 2)])
def test_on_a_terminal_the_count_must_be_confirmed(
    work_queue: WorkQueue, typed: str, code: int, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    work_queue.dead_letter("e1", "e2")
    monkeypatch.chdir(work_queue.folder)
    shown = at_terminal(
        *("dead", "broker", "requeue", "--all"), typed=typed, PILLARBOX_TRANSPORTS__RABBIT__URL=work_queue.url
    )
    assert (shown.returncode, "Requeue 2 dead letters?" in shown.screen) == (code, True), shown.screen
    assert ("requeueing" in shown.screen) is (code == 0)
    work_queue.wait_for(work_queue.dead, left)


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
    work_queue: WorkQueue, command: list[str]
) -> None:
    closed = f"amqp://app:canary-password@127.0.0.1:{free_port()}/"
    done = work_queue.run("dead", "broker", *command, PILLARBOX_TRANSPORTS__RABBIT__URL=closed)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done.stderr
    assert "cannot connect to RabbitMQ at 127.0.0.1" in done.stderr
    assert "retrying" not in done.stderr
    assert "canary-password" not in done.stderr


@pytest.mark.parametrize("command", [["list"], ["requeue", "--all", "--yes"], ["status"]], ids=" ".join)
def test_a_wrong_password_is_never_shown(work_queue: WorkQueue, command: list[str]) -> None:
    wrong = work_queue.url.replace("guest:guest", "guest:canary-password")
    words = command if command == ["status"] else ["dead", "broker", *command]
    assert work_queue.run("schema", "apply").returncode == 0
    done = work_queue.run("--verbose", *words, PILLARBOX_TRANSPORTS__RABBIT__URL=wrong)
    assert "ACCESS_REFUSED" in done.stdout + done.stderr
    assert "canary-password" not in done.stdout + done.stderr


def test_an_unconfigured_queue_can_be_listed_by_name(work_queue: WorkQueue) -> None:
    publish(work_queue.url, f"{work_queue.work}.quarantine", "e1")
    done = pillarbox(
        *("dead", "broker", "list", "--queue", f"{work_queue.work}.quarantine", "--json"),
        PILLARBOX_TRANSPORT=work_queue.url,
    )
    assert [dead_letter["event_id"] for dead_letter in json.loads(done.stdout)["dead_letters"]] == ["e1"]
