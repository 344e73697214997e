"""`pillarbox relay` with the sample settings on real servers."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from pika.exchange_type import ExchangeType

from pillarbox import Event, Outbox
from tests.integration.cli.running import pillarbox
from tests.integration.rabbitmq.consumer import channel, take_all
from tests.servers.rabbitmq import RabbitMQServer

SAMPLES = Path(__file__).resolve().parents[3] / "docs" / "samples"

HANDLERS = """
from pathlib import Path
from uuid import uuid4
from pillarbox import Handlers

handlers = Handlers()

@handlers.on("attendance.absence_notice_submitted", name="absences")
def note(event, context):
    Path("notes.txt").write_text(event.payload["absenceNoticeId"])
"""


@pytest.fixture
def vhost(rabbitmq_server: RabbitMQServer) -> str:
    """The URL of a new virtual host, because the names of the queues are fixed."""
    name = f"samples-{uuid4().hex}"
    rabbitmq_server.add_vhosts(name)
    return rabbitmq_server.url(name)


def record(url: str, *events: Event) -> None:
    with psycopg.connect(url) as connection:
        Outbox().record(connection, *events)


def carry(sample: str, cwd: Path, **variables: str) -> str:
    """Run the relay of a sample without initial delay; returns its output."""
    file = str(SAMPLES / f"{sample}.toml")
    done = pillarbox(
        "--config", file, "relay", "--until-empty", cwd=cwd, PILLARBOX_RELAY__INITIAL_DELAY="0s", **variables
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_notification_sample_publishes_to_the_queue_of_each_audience(
    postgres_url: str, vhost: str, tmp_path: Path
) -> None:
    audiences = ["restaurant", "customer", "agency", "admin"]
    events = [
        Event("ORDER_CREATED", {"no": number}, aggregate_type=audience.upper(), aggregate_id="5", event_id=audience)
        for number, audience in enumerate(audiences)
    ]
    record(postgres_url, *events)
    said = carry("notifications", tmp_path, PILLARBOX_STORE=postgres_url, PILLARBOX_TRANSPORT=vhost)
    assert "store.ledger" not in said
    for number, audience in enumerate(audiences):
        [taken] = take_all(vhost, f"notification.{audience}")
        assert json.loads(taken.body) == {
            "event_id": audience,
            "event_type": "ORDER_CREATED",
            "aggregate_type": audience.upper(),
            "aggregate_id": 5,
            "payload": {"no": number},
        }
    declare_again(vhost, "notifications.exchange")
    record(postgres_url, *events)  # the same events once more
    carry("notifications", tmp_path, PILLARBOX_STORE=postgres_url, PILLARBOX_TRANSPORT=vhost)
    assert [take_all(vhost, f"notification.{audience}") for audience in audiences] == [[], [], [], []]
    with psycopg.connect(postgres_url) as connection:
        noted = connection.execute("SELECT event_id, status FROM outbox_ledger ORDER BY id").fetchall()
    assert sorted(noted) == sorted((audience, "SUCCESS") for audience in audiences)


def test_the_ingestion_sample_publishes_to_its_queue(postgres_url: str, vhost: str, tmp_path: Path) -> None:
    record(postgres_url, Event("DocumentUploaded", {"documentName": "a.pdf"}))
    carry("ingestion", tmp_path, PILLARBOX_STORE=postgres_url, PILLARBOX_TRANSPORT=vhost)
    [taken] = take_all(vhost, "document.uploaded.q")
    assert taken.body == b'{"documentName":"a.pdf"}'
    assert take_all(vhost, "document.uploaded.dlq") == []
    declare_again(vhost, "doc.events", "doc.events.dlx")


def declare_again(vhost: str, exchange: str, *dead_letters: str) -> None:
    """A broker rejects the declaration of an existing exchange with another type."""
    with channel(vhost) as broker:
        broker.exchange_declare(exchange, ExchangeType.topic, durable=True)
        for name in dead_letters:
            broker.exchange_declare(name, passive=True)


def test_the_handler_sample_calls_its_handlers(postgres_url: str, tmp_path: Path) -> None:
    (tmp_path / "school").mkdir()
    (tmp_path / "school" / "notifications.py").write_text(HANDLERS)
    record(postgres_url, Event("attendance.absence_notice_submitted", {"absenceNoticeId": "n-1"}))
    said = carry("school", tmp_path, PILLARBOX_STORE=postgres_url)
    assert said.startswith("relay default: each event to every handler of its type in school.notifications:handlers")
    assert (tmp_path / "notes.txt").read_text() == "n-1"


@pytest.fixture
def with_an_event(tmp_path: Path) -> Path:
    assert pillarbox("schema", "apply", cwd=tmp_path).returncode == 0
    with closing(sqlite3.connect(tmp_path / "pillarbox.db")) as connection, connection:
        Outbox().record(connection, Event("order.placed", {}))
    return tmp_path


@pytest.mark.parametrize(("events", "logged"), [("true", True), ("false", False), (None, False)])
def test_deliveries_are_logged_only_on_request(with_an_event: Path, events: str | None, logged: bool) -> None:
    chosen = {} if events is None else {"PILLARBOX_LOGGING__EVENTS": events}
    done = pillarbox("relay", "--until-empty", cwd=with_an_event, PILLARBOX_TRANSPORT="stdout://", **chosen)
    assert ("delivered event" in done.stderr) is logged
    assert "relay started" in done.stderr


def test_failures_of_single_events_are_logged_without_a_setting(with_an_event: Path) -> None:
    (with_an_event / "failing.py").write_text(
        "from pillarbox import Handlers\nhandlers = Handlers()\n"
        "@handlers.on('order.placed')\ndef fail(event, context): raise ValueError('no stock')\n"
    )
    done = pillarbox("relay", "--until-empty", cwd=with_an_event, PILLARBOX_TRANSPORT="handlers:failing:handlers")
    assert "ERROR pillarbox.relay.events: failed to send event" in done.stderr


@pytest.mark.parametrize("form", ["text", "json"])
def test_verbose_logs_single_events_whatever_the_settings_say(with_an_event: Path, form: str) -> None:
    done = pillarbox(
        *("--verbose", "--set", "logging.level=ERROR", "--set", f"logging.format={form}", "relay", "--until-empty"),
        cwd=with_an_event,
        PILLARBOX_TRANSPORT="stdout://",
    )
    [line] = [line for line in done.stderr.splitlines() if "about to send event" in line]
    assert line.startswith("{") is (form == "json")


def test_json_lines_have_the_values_by_name(with_an_event: Path) -> None:
    done = pillarbox(
        *("--set", "logging.format=json", "--set", "logging.events=true", "relay", "--until-empty"),
        cwd=with_an_event,
        PILLARBOX_TRANSPORT="stdout://",
    )
    lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    [delivered] = [line for line in lines if line["message"].startswith("delivered event")]
    expected = {"level": "INFO", "logger": "pillarbox.relay.events", "event_type": "order.placed", "attempt": 1}
    assert expected.items() <= delivered.items()
    assert len(delivered["event_id"]) == 36
    assert "relay started" in " ".join(line["message"] for line in lines)


def test_a_level_hides_the_lines_below_it(with_an_event: Path) -> None:
    done = pillarbox(
        *("--set", "logging.level=WARNING", "relay", "--until-empty"),
        cwd=with_an_event,
        PILLARBOX_TRANSPORT="stdout://",
    )
    assert (done.returncode, "INFO" in done.stderr) == (0, False)


def test_an_unknown_format_names_the_known_ones(with_an_event: Path) -> None:
    done = pillarbox("--set", "logging.format=yaml", "relay", "--until-empty", cwd=with_an_event)
    assert done.returncode == 2
    assert all(word in done.stderr for word in ("logging.format", "yaml", "text", "json"))


def test_a_disabled_history_stores_nothing(with_an_event: Path) -> None:
    done = pillarbox(
        *("--set", "store.history=off", "relay", "--until-empty"), cwd=with_an_event, PILLARBOX_TRANSPORT="stdout://"
    )
    assert done.returncode == 0, done.stderr
    with closing(sqlite3.connect(with_an_event / "pillarbox.db")) as connection:
        assert connection.execute("SELECT count(*) FROM outbox_event").fetchone() == (0,)


def test_a_relay_disabled_in_the_file_prints_the_setting(with_an_event: Path) -> None:
    (with_an_event / "pillarbox.toml").write_text("[relay]\nenabled = false\n")
    done = pillarbox("relay", cwd=with_an_event)
    assert (done.returncode, done.stdout) == (0, "relay: disabled by relay.enabled in pillarbox.toml\n")
