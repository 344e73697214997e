"""Metrics, health and traces of every process, and the warnings of a system without recipients."""

from __future__ import annotations

import json
import re
import subprocess

import httpx
import pytest
from pika.exceptions import ChannelClosedByBroker
from sqlalchemy import text

from apps.notifications.domain import Audience
from tests.apps.notifications import broker
from tests.apps.notifications.app_database import AppDatabase, reservation
from tests.apps.notifications.processes import Fleet, Process, notifications
from tests.apps.telemetry import TO_STDOUT, Span, metric, spans, tree
from tests.servers.ports import free_port
from tests.servers.waiting import wait_until

BOUND = 90.0
CHANNELS = {
    "NOTIFICATIONS_SMTP": "smtp://127.0.0.1",
    "NOTIFICATIONS_FROM": "noreply@example.org",
    "NOTIFICATIONS_PUSH_URL": "http://127.0.0.1:9/push",
    "NOTIFICATIONS_SMS_URL": "http://127.0.0.1:9/sms",
}
PAYLOAD = json.dumps({"guest_name": "Grace", "party_size": 2, "reserved_for": "2026-12-24T19:00:00Z"})
RECIPIENT = ("add-recipient", "11", "Ada", "--audience", "RESTAURANT", "--aggregate-id", "5", "--channel", "IN_APP")


def succeed(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout


def announce(database: str, **variables: str) -> str:
    arguments = ("announce", "RESERVATION_REQUESTED", "RESTAURANT", "5", PAYLOAD)
    return succeed(notifications(*arguments, PILLARBOX_STORE=database, **variables))


def with_port(fleet: Fleet, *arguments: str, **variables: str) -> tuple[Process, str]:
    address = f"127.0.0.1:{free_port()}"
    return fleet.start("apps.notifications", *arguments, NOTIFICATIONS_METRICS=address, **variables), address


def test_one_trace_and_the_metrics_of_every_process(fleet: Fleet, postgres_app: AppDatabase) -> None:
    succeed(notifications(*RECIPIENT, PILLARBOX_STORE=postgres_app.url))
    hurried = {"NOTIFICATION_OUTBOX_INITIAL_DELAY": "0"} | TO_STDOUT
    relay, relay_at = with_port(fleet, "relay", **hurried)
    listening, listening_at = with_port(fleet, "listen", **TO_STDOUT)
    delivering, delivering_at = with_port(fleet, "deliver", **CHANNELS, **TO_STDOUT)
    port = free_port()
    serving = fleet.start("apps.notifications", "serve", "--port", str(port), **TO_STDOUT)
    output = announce(postgres_app.url, **TO_STDOUT)
    [announced] = [span for span in spans(output) if span.name == "announce RESERVATION_REQUESTED"]

    def traced() -> dict[str, str]:
        return tree([output, *(process.log_text() for process in (relay, listening, delivering))], announced.trace[2:])

    expected = {
        "announce RESERVATION_REQUESTED": "",
        "create RESERVATION_REQUESTED": "announce RESERVATION_REQUESTED",
        "send restaurant": "create RESERVATION_REQUESTED",
        "process RESERVATION_REQUESTED": "create RESERVATION_REQUESTED",
        "create notification.in_app": "process RESERVATION_REQUESTED",
        "send in_app": "create notification.in_app",
        "process notification.in_app": "create notification.in_app",
    }
    wait_until(lambda: len(traced()) >= len(expected), bound=BOUND, what="the whole trace")
    assert traced() == expected
    for address, name, labels in (
        (relay_at, "outbox_published_total", {"destination": "restaurant"}),
        (listening_at, "inbox_events_total", {"consumer": "notification.restaurant", "result": "processed"}),
        (listening_at, "notifications_saved_total", {"audience": "RESTAURANT", "channel": "IN_APP"}),
        (delivering_at, "outbox_published_total", {"destination": "in_app"}),
        (delivering_at, "outbox_relays_running", {}),
    ):
        wait_until(lambda: metric(address, name, **labels) == 1, bound=BOUND, what=f"{name} {labels}")  # noqa: B023
    api = f"127.0.0.1:{port}"
    health = httpx.get(f"http://{api}/health").json()
    assert (health["status"], health["recipients"], health["warnings"]) == ("UP", 1, [])
    for address in (relay_at, listening_at, delivering_at):
        assert httpx.get(f"http://{address}/health").json()["status"] == "UP"
    wait_until(lambda: metric(api, "notifications_backlog") == 0, bound=BOUND, what="nothing is pending")
    assert metric(api, "http_requests_total", route="/health", status="200") == 1

    def served() -> list[Span]:
        return [span for span in spans(serving.log_text()) if span.name == "GET /health"]

    wait_until(lambda: bool(served()), bound=BOUND, what="the span of the request")
    assert len(served()) == 1


def test_a_system_without_recipients_warns_and_counts(fleet: Fleet, postgres_app: AppDatabase) -> None:
    relay, _ = with_port(fleet, "relay", NOTIFICATION_OUTBOX_INITIAL_DELAY="0")
    listening, address = with_port(fleet, "listen", "RESTAURANT")
    wait_until(lambda: "there are no recipients" in listening.log_text(), bound=BOUND, what="the warning at the start")
    postgres_app.record(reservation("evt-1"))
    warning = "event evt-1 (RESERVATION_REQUESTED) creates no notifications: RESTAURANT 5 has no recipients"
    wait_until(lambda: warning in listening.log_text(), bound=BOUND, what=warning)
    counted = ("notifications_without_recipients_total", {"audience": "RESTAURANT"})
    wait_until(lambda: metric(address, counted[0], **counted[1]) == 1, bound=BOUND, what="it is counted")
    succeed(notifications(*RECIPIENT, PILLARBOX_STORE=postgres_app.url))
    postgres_app.record(reservation("evt-2"))
    wait_until(
        lambda: postgres_app.notifications() == [("evt-2", 11, "IN_APP")], bound=BOUND, what="the notification of Ada"
    )
    assert relay.running
    assert metric(address, counted[0], **counted[1]) == 1


def test_a_recipient_can_be_changed(app: AppDatabase) -> None:
    for channels in (("EMAIL", "SMS"), ("PUSH",)):
        chosen = [word for channel in channels for word in ("--channel", channel)]
        arguments = ("add-recipient", "11", "Ada", "--audience", "restaurant", "--aggregate-id", "5", *chosen)
        output = succeed(notifications(*arguments, "--email", "ada@example.org", PILLARBOX_STORE=app.url))
        assert output == f"user 11 is notified of the events of RESTAURANT 5 by {', '.join(channels)}\n"
    assert app.number("SELECT count(*) FROM recipient WHERE email = 'ada@example.org'") == 1
    assert app.number("SELECT count(*) FROM audience_member") == 1
    assert app.number("SELECT count(*) FROM channel_preference WHERE enabled") == 1


def test_announce_records_an_event(app: AppDatabase) -> None:
    output = announce(app.url)
    [event_id] = re.findall(r"recorded event (\S+)", output)
    [row] = app.rows(text("SELECT event_id, aggregate_type, aggregate_id FROM outbox_message"))
    assert tuple(row) == (event_id, "RESTAURANT", "5")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("NOTIFICATION_OUTBOX_POLL_INTERVAL", "never"),
        ("NOTIFICATION_OUTBOX_POLL_INTERVAL", "0"),
        ("NOTIFICATION_OUTBOX_BATCH_SIZE", "0"),
        ("NOTIFICATION_OUTBOX_INITIAL_DELAY", "-1"),
        ("NOTIFICATION_OUTBOX_LIMIT", "5"),
        ("SPRING_RABBITMQ_HOST", "mq"),
        ("NOTIFICATIONS_METRICS", "9464"),
        ("OTEL_TRACES_EXPORTER", "carrier-pigeon"),
    ],
)
def test_an_invalid_variable_is_named_before_the_relay_starts(variable: str, value: str) -> None:
    servers = {"PILLARBOX_STORE": "sqlite:///x.db", "PILLARBOX_TRANSPORT": "amqp://a:canary@mq/"}
    done = notifications("relay", **servers, **{variable: value})
    assert (done.returncode, variable in done.stderr, "canary" in done.stderr) == (1, True, False)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["relay", "listen", "serve"])
def test_each_process_declares_the_topology_before_the_first_event(command: str, fleet: Fleet, rabbit: str) -> None:
    port = ("--port", str(free_port())) if command == "serve" else ()
    with_port(fleet, command, *port)
    for audience in Audience:
        for queue in (audience.queue, f"{audience.queue}.dlq"):
            wait_until(lambda queue=queue: exists(rabbit, queue), bound=BOUND, what=f"{queue} is declared")  # type: ignore[misc]


def exists(rabbit: str, queue: str) -> bool:
    try:
        return broker.ready(rabbit, queue) >= 0
    except ChannelClosedByBroker:
        return False
