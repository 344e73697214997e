"""The pages of `pillarbox relay` on real servers: healthy, and during failures."""

import json
import signal
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import httpx
import psycopg
import pytest

from pillarbox import Event, Outbox
from tests.integration.cli.running import fresh_pillarbox
from tests.integration.telemetry.processes import Pages, relay
from tests.servers.availability import available
from tests.servers.ports import free_port
from tests.servers.postgres import PostgresServer
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.waiting import wait_until


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder with a store."""
    assert fresh_pillarbox("schema", "apply", cwd=tmp_path).returncode == 0
    return tmp_path


def record(shop: Path, *events: Event) -> None:
    with closing(sqlite3.connect(shop / "pillarbox.db")) as connection, connection:
        Outbox().record(connection, *events)


def orders(count: int) -> list[Event]:
    return [Event("order.placed", {"n": number}) for number in range(count)]


@pytest.fixture
def pages(shop: Path) -> Iterator[Pages]:
    with relay(shop, PILLARBOX_TRANSPORT="stdout://") as pages:
        yield pages


def test_deliveries_are_counted(shop: Path, pages: Pages) -> None:
    record(shop, *orders(3))
    wait_until(lambda: pages.log_text().count("delivered event") == 3, bound=90, what="three deliveries")
    [destination] = {
        line.split('destination="')[1].split('"')[0]
        for line in pages.get("/metrics").text.splitlines()
        if line.startswith("outbox_published_total{")
    }
    labels = {"destination": destination, "event_type": "order.placed"}
    assert pages.value("outbox_published_total", **labels) == 3.0
    assert pages.value("outbox_failed_total", **labels) == 0.0
    assert pages.value("outbox_publish_duration_seconds_count", destination=destination) == 3.0
    assert pages.value("outbox_lag_seconds_count", destination=destination) == 3.0
    pages.until("outbox_backlog", 0.0)
    pages.until("outbox_lanes_owned", 1.0)
    assert pages.value("outbox_relays_running") == 1.0


def test_a_running_relay_is_healthy(pages: Pages) -> None:
    assert [pages.get(path).status_code for path in ("/livez", "/readyz", "/health", "/metrics")] == [200] * 4
    status, facts = pages.health()
    assert (status, facts["status"], facts["backlog"], facts["oldest_seconds"]) == (200, "UP", 0, None)


def test_metrics_have_the_requested_format(pages: Pages) -> None:
    asked = httpx.get(f"http://{pages.address}/metrics", headers={"accept": "application/openmetrics-text"})
    assert asked.headers["content-type"].startswith("application/openmetrics-text")
    assert asked.text.endswith("# EOF\n")
    assert pages.get("/metrics").headers["content-type"].startswith("text/plain")


def test_other_paths_and_methods_are_rejected(pages: Pages) -> None:
    assert pages.get("/").status_code == 404
    assert httpx.post(f"http://{pages.address}/health").status_code == 405


def test_the_port_is_closed_when_the_relay_has_drained(pages: Pages) -> None:
    assert pages.stop() == 0
    with pytest.raises(httpx.ConnectError):
        pages.get("/livez")


def test_a_relay_with_a_stopped_loop_does_not_respond(pages: Pages) -> None:
    pages.signal(signal.SIGSTOP)
    with pytest.raises(httpx.ReadTimeout):
        httpx.get(f"http://{pages.address}/livez", timeout=1)
    pages.signal(signal.SIGCONT)
    assert pages.get("/livez").status_code == 200


def test_a_port_in_use_is_an_error_at_the_start(shop: Path, pages: Pages) -> None:
    done = fresh_pillarbox("relay", cwd=shop, PILLARBOX_TRANSPORT="stdout://", PILLARBOX_RELAY__LISTEN=pages.address)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert f"PILLARBOX_RELAY__LISTEN: cannot listen on {pages.address}: Address already in use" in done.stderr


def test_without_the_setting_no_port_is_opened(shop: Path) -> None:
    done = fresh_pillarbox("relay", "--until-empty", "--json", cwd=shop, PILLARBOX_TRANSPORT="stdout://")
    assert '"listen": null' in done.stdout.splitlines()[0]


@pytest.mark.parametrize(
    ("variable", "limit", "why"),
    [
        ("PILLARBOX_RELAY__HEALTH__MAX_BACKLOG", "2", "3 events are pending, more than relay.health.max_backlog (2)"),
        ("PILLARBOX_RELAY__HEALTH__MAX_AGE", "0s", "the oldest event is pending for"),
    ],
)
def test_health_is_down_beyond_its_limits(shop: Path, variable: str, limit: str, why: str) -> None:
    record(shop, *orders(3))
    # An unavailable broker: the events stay pending.
    out = {"PILLARBOX_TRANSPORT": f"amqp://guest@127.0.0.1:{free_port()}/", variable: limit}
    with relay(shop, **out) as pages:
        status, facts = pages.health()
        assert (status, facts["status"], facts["backlog"]) == (503, "DOWN", 3)
        assert facts["reasons"][0].startswith(why)


def test_a_high_limit_raises_the_count_limit(shop: Path) -> None:
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10200)"
    with closing(sqlite3.connect(shop / "pillarbox.db")) as connection, connection:
        connection.execute(f"INSERT INTO outbox_message (event_type, payload) {numbers} SELECT 'a', '{{}}' FROM n")
    out = {"PILLARBOX_TRANSPORT": f"amqp://127.0.0.1:{free_port()}/"}
    with relay(shop, **out, PILLARBOX_RELAY__HEALTH__MAX_BACKLOG="10100") as pages:
        status, facts = pages.health()
        assert (status, facts["backlog"], facts["exact"]) == (503, 10_101, False)


def test_an_unavailable_broker_keeps_the_relay_alive_and_ready(shop: Path) -> None:
    record(shop, *orders(1))
    url = f"amqp://app:canary-password@127.0.0.1:{free_port()}/"
    with relay(shop, PILLARBOX_TRANSPORT=url) as pages:
        pages.until("outbox_breaker_state", 2.0, destination="order.placed")
        assert [pages.get(path).status_code for path in ("/livez", "/readyz", "/health")] == [200] * 3
        wait_until(
            lambda: pages.health()[1]["breakers"].get("order.placed") in ("open", "half-open"),
            bound=90,
            what="the breaker is shown",
        )
        shown = [pages.get(path).text for path in ("/health", "/metrics", "/livez", "/readyz")]
        assert "canary-password" not in "".join([*shown, pages.log_text()])


def test_an_unavailable_store_makes_the_relay_unready(tmp_path: Path) -> None:
    with available(PostgresServer) as server:
        server.create_database("shop")
        url = server.url("shop").replace("postgres@", "postgres:canary-password@")
        assert fresh_pillarbox("schema", "apply", cwd=tmp_path, PILLARBOX_STORE=url).returncode == 0
        with relay(tmp_path, PILLARBOX_STORE=url, PILLARBOX_TRANSPORT="stdout://") as pages:
            assert pages.get("/readyz").status_code == 200
            server.stop()
            wait_until(lambda: pages.get("/readyz").status_code == 503, bound=40, what="it is unready")
            assert (pages.get("/livez").status_code, pages.health()[0]) == (200, 503)
            assert pages.value("outbox_store_up") == 0.0
            assert pages.value("outbox_backlog") is None
            shown = [pages.get(path).text for path in ("/health", "/metrics", "/readyz")]
            assert "canary-password" not in "".join([*shown, pages.log_text()])
            server.start()
            wait_until(lambda: pages.get("/readyz").status_code == 200, bound=40, what="it is ready again")


def test_a_relay_whose_settlements_fail_is_reported_as_stalled(shop: Path) -> None:
    def execute(statement: str) -> None:
        with closing(sqlite3.connect(shop / "pillarbox.db")) as connection, connection:
            connection.execute(statement)

    def doctor() -> str:
        found = json.loads(fresh_pillarbox("doctor", "--json", cwd=shop).stdout)["findings"]
        return next(str(one["message"]) for one in found if one["check"] == "symptoms.relays")

    execute("CREATE TRIGGER keep BEFORE DELETE ON outbox_message BEGIN SELECT RAISE(ABORT, 'kept'); END")
    record(shop, *orders(1))
    quick = {
        "PILLARBOX_RELAY__LEASE": "3s",
        "PILLARBOX_RELAY__HEARTBEAT_INTERVAL": "500ms",
        "PILLARBOX_RELAY__SEND_TIMEOUT": "1s",
    }
    with relay(shop, PILLARBOX_TRANSPORT="stdout://", **quick) as pages:
        assert pages.get("/readyz").status_code == 200
        wait_until(lambda: pages.get("/readyz").status_code == 503, bound=120, what="it is stalled")
        assert "no progress" in pages.get("/readyz").json()["reason"]
        assert (pages.value("outbox_relay_stalled"), pages.get("/livez").status_code) == (1.0, 200)
        assert "stage=settle" in pages.log_text()
        wait_until(lambda: "without progress" in doctor(), bound=60, what="the doctor finds it")
        listed = json.loads(fresh_pillarbox("relays", "list", "--json", cwd=shop).stdout)["relays"]
        assert ["results" in one["stalled"] for one in listed] == [True]
        execute("DROP TRIGGER keep")
        wait_until(lambda: pages.get("/readyz").status_code == 200, bound=60, what="it is ready again")
        assert pages.value("outbox_relay_stalled") == 0.0
        wait_until(lambda: doctor().startswith("running: "), bound=60, what="the doctor finds nothing")


def test_an_invalid_schema_makes_the_relay_unready(postgres_url: str, tmp_path: Path) -> None:
    with relay(tmp_path, PILLARBOX_STORE=postgres_url, PILLARBOX_TRANSPORT="stdout://") as pages:
        assert pages.get("/readyz").status_code == 200
        with psycopg.connect(postgres_url) as connection:
            connection.execute("DELETE FROM outbox_schema")
        wait_until(lambda: pages.get("/readyz").status_code == 503, bound=90, what="it is unready")
        assert "pillarbox schema apply" in pages.get("/readyz").json()["reason"]


QUEUES = """
[[transports.rabbit.queues]]
name = "pages.q"
dead_letter = { exchange = "pages.dlx", queue = "pages.dlq" }
"""


def test_the_depth_of_dead_letter_queues_is_shown(shop: Path, rabbitmq_server: RabbitMQServer) -> None:
    (shop / "pillarbox.toml").write_text(f'[transports.rabbit]\nurl = "{rabbitmq_server.url()}"\n{QUEUES}')
    record(shop, Event("pages.q", {}))  # without routes, to the queue named after its type
    with relay(shop) as pages:
        wait_until(lambda: pages.log_text().count("delivered event") == 1, bound=90, what="a delivery")
        pages.until("outbox_dead_letter_queue_depth", 0.0, queue="pages.dlq")


def test_a_broker_that_does_not_respond_does_not_delay_health(shop: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"amqp://127.0.0.1:{mute.getsockname()[1]}/"
        (shop / "pillarbox.toml").write_text(f'[transports.rabbit]\nurl = "{url}"\n{QUEUES}')
        with relay(shop) as pages:

            def responds_without_the_broker(path: str) -> bool:
                """A page that asked the broker would take three seconds every time; a busy machine takes them once."""
                try:
                    return httpx.get(f"http://{pages.address}{path}", timeout=2).status_code == 200
                except httpx.ReadTimeout:
                    return False

            for path in ("/readyz", "/health", "/metrics"):
                wait_until(partial(responds_without_the_broker, path), bound=90, what=f"{path} answers")
