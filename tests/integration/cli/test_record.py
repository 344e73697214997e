"""`pillarbox record`: one event from options, many from lines of JSON."""

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.integration.cli.conftest import Stock
from tests.integration.cli.running import environment, pillarbox
from tests.integration.cli.terminal import at_terminal
from tests.servers.waiting import wait_until


def feed(stock: Stock, lines: Sequence[str | bytes], *options: str) -> "subprocess.CompletedProcess[str]":
    text = b"".join((line if isinstance(line, bytes) else line.encode()) + b"\n" for line in lines)
    done = subprocess.run(
        [sys.executable, "-m", "pillarbox", "record", "--ndjson", "-", *options],
        env=environment({"PILLARBOX_STORE": stock.url}),
        input=text,
        capture_output=True,
        timeout=120,
        check=False,
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def line(event_id: str, **more: object) -> str:
    return json.dumps({"event_type": "order.placed", "payload": {}, "event_id": event_id} | more)


def recorded(stock: Stock) -> list[str]:
    return [row[0] for row in stock.ask("SELECT event_id FROM outbox_message ORDER BY id")]


@pytest.fixture
def here(sqlite_url: str) -> Stock:
    return Stock(sqlite_url)


def test_every_option_sets_its_field(stock: Stock) -> None:
    done = pillarbox(
        "record", "order.placed", '{"id": 42}', "--id", "a", "--key", "k", "--aggregate-type", "ORDER",
        "--aggregate-id", "42", "--destination", "orders", "--header", "tenant=acme", "--header", "x=a=b",
        "--correlation-id", "c", "--causation-id", "b", "--trace-id", "t", "--schema-version", "3", "--delay", "1h",
        PILLARBOX_STORE=stock.url,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "a\n", "")
    [row] = stock.ask(
        "SELECT event_type, ordering_key, aggregate_type, aggregate_id, destination, correlation_id, causation_id,"
        " trace_id, schema_version, content_type, available_at IS NOT NULL, payload FROM outbox_message"
    )
    assert row[:10] == ("order.placed", "k", "ORDER", "42", "orders", "c", "b", "t", 3, "application/json")
    assert (bool(row[10]), bytes(row[11])) == (True, b'{"id":42}')
    shown = json.loads(pillarbox("events", "show", "a", "--json", PILLARBOX_STORE=stock.url).stdout)
    assert shown["events"][0]["headers"] == {"tenant": "acme", "x": "a=b"}


def test_a_generated_id_is_printed(here: Stock) -> None:
    done = pillarbox("record", "order.placed", "--json", PILLARBOX_STORE=here.url)
    answer = json.loads(done.stdout)
    assert (answer["recorded"], answer["dry_run"]) == (1, False)
    assert recorded(here) == answer["event_ids"]


def test_other_content_types_accept_any_text(here: Stock) -> None:
    pillarbox("record", "note", "plain text", "--content-type", "text/plain", PILLARBOX_STORE=here.url)
    [(payload,)] = here.ask("SELECT payload FROM outbox_message")
    assert payload == b"plain text"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["order.placed", "{id: 42}"], 1, "payload is not JSON"),
        (["order.placed", "42"], 1, "payload"),
        (["order.placed", "[" * 20_000], 1, "payload is not JSON"),
        (["order\tplaced"], 1, "event_type has the control character"),
        (["order.placed", "--header", "tenant"], 2, "NAME=VALUE"),
        (["order.placed", "--delay", "soon"], 2, "not a duration"),
        ([], 2, "Give the event type"),
        (["order.placed", "--ndjson", "-"], 2, "--ndjson cannot be combined"),
    ],
)
def test_invalid_input_is_an_error_and_nothing_is_recorded(
    here: Stock, arguments: list[str], code: int, said: str
) -> None:
    done = pillarbox("record", *arguments, PILLARBOX_STORE=here.url)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    assert recorded(here) == []


def test_lines_are_recorded_in_order(stock: Stock) -> None:
    names = [f"e{number}" for number in range(1201)]
    done = feed(stock, [line(name) for name in names])
    assert (done.returncode, done.stdout, done.stderr) == (0, "recorded 1,201 events\n", "")
    assert recorded(stock) == names


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("{", "line 703: the line is not JSON"),
        (line("x", paylod={}), "line 703: an event has no field 'paylod'; did you mean payload?"),
        (line("e5"), "line 703: e5 is already pending"),
        (b'{"event_type": "\xff"}', "line 703: the line is not UTF-8"),
        (line("x", payload={"big": "x" * 2_000_000}), "line 703: payload of order.placed has"),
    ],
    ids=["no JSON", "an unknown name", "a repeat", "no UTF-8", "too large"],
)
def test_an_invalid_line_is_named_and_earlier_lines_are_recorded(here: Stock, wrong: str | bytes, said: str) -> None:
    lines: list[str | bytes] = [line(f"e{number}") for number in range(1000)]
    lines[702] = wrong
    done = feed(here, lines)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert said in done.stderr
    assert recorded(here) == [f"e{number}" for number in range(702)]


def test_an_error_of_the_database_names_the_line(postgres_url: str) -> None:
    stock = Stock(postgres_url)
    feed(stock, [line("taken")])
    done = feed(stock, [line("a"), "", line("taken"), line("b")])
    assert "line 3: taken is already pending" in done.stderr
    assert recorded(stock) == ["taken", "a"]


def test_duplicates_can_be_ignored(here: Stock) -> None:
    feed(here, [line("a")])
    command = [sys.executable, "-m", "pillarbox", "--set", "record.duplicate=ignore", "record", "--ndjson", "-"]
    lines = "\n".join([line("b"), line("a"), line("c")])
    subprocess.run(command, env=environment({"PILLARBOX_STORE": here.url}), input=lines, text=True, check=True)
    assert recorded(here) == ["a", "b", "c"]


def test_a_dry_run_names_every_invalid_line(here: Stock) -> None:
    done = feed(here, [line("a"), "{", line("b"), line("c", headers=7)], "--dry-run")
    assert done.returncode == 1
    assert [said.split(": ")[1] for said in done.stderr.splitlines()] == ["line 2", "line 4", "2 invalid lines"]
    good = feed(here, [line("a"), "", line("b")], "--dry-run")
    assert (good.returncode, good.stdout) == (0, "would record 2 events\n")
    assert recorded(here) == []


def test_a_terminal_shows_the_progress(here: Stock, tmp_path: Path) -> None:
    file = tmp_path / "events.ndjson"
    file.write_text("\n".join(line(f"e{number}") for number in range(50)))
    shown = at_terminal("record", "--ndjson", str(file), PILLARBOX_STORE=here.url)
    assert (shown.returncode, "recording" in shown.screen, "recorded 50 events" in shown.screen) == (0, True, True)


def test_an_interrupt_exits_with_130_and_keeps_committed_events(here: Stock) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "pillarbox", "record", "--ndjson", "-"],
        env=environment({"PILLARBOX_STORE": here.url}),
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write("".join(line(f"e{number}") + "\n" for number in range(600)))
        process.stdin.flush()
        wait_until(lambda: len(recorded(here)) == 500, bound=90, what="the first batch is recorded")
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == "pillarbox: interrupted\n"
        assert process.wait(120) == 130
    assert len(recorded(here)) == 500


def test_without_tables_the_error_names_the_command(empty_postgres_url: str) -> None:
    done = pillarbox("record", "order.placed", PILLARBOX_STORE=empty_postgres_url)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "pillarbox schema apply" in done.stderr


def test_a_memory_store_is_rejected() -> None:
    done = pillarbox("record", "order.placed", PILLARBOX_STORE="memory://")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
