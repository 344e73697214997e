"""`pillarbox doctor`, as text and as JSON."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pillarbox.admin.admin import AdminStore
from pillarbox.core.event import Event
from pillarbox.testing.conformance.lane_owner import Owner
from tests.integration.cli.conftest import Stock
from tests.integration.cli.running import pillarbox
from tests.integration.cli.terminal import at_terminal
from tests.integration.rabbitmq.consumer import channel
from tests.servers.availability import available
from tests.servers.postgres import PostgresServer
from tests.servers.rabbitmq import RabbitMQServer

CANARY = "canary-password"


def findings(*options: str, **variables: str) -> tuple[int, dict[str, dict[str, Any]]]:
    done = pillarbox("doctor", "--json", *options, cwd=None, **variables)
    assert done.stderr == ""
    report = json.loads(done.stdout)
    assert report["result"] in {finding["result"] for finding in report["findings"]}
    return done.returncode, {finding["check"]: finding for finding in report["findings"]}


def at_work(stock: Stock) -> None:
    async def work(store: AdminStore) -> None:
        await Owner.of(store, name="till")

    stock.run(work)


@pytest.fixture
def durable_url() -> Iterator[str]:
    """A server that passes all checks, with tables."""
    with available(lambda: PostgresServer(settings={"max_prepared_transactions": "0"})) as server:
        Stock(server.url()).run(lambda store: store.schema.apply())
        yield server.url()


def test_a_healthy_store_passes_all_checks(durable_url: str, rabbitmq_server: RabbitMQServer) -> None:
    at_work(Stock(durable_url))
    code, found = findings("--strict", PILLARBOX_STORE=durable_url, PILLARBOX_TRANSPORT=rabbitmq_server.url())
    assert {name: one for name, one in found.items() if one["result"] != "pass"} == {}
    assert code == 0
    groups = list(dict.fromkeys(name.split(".")[0] for name in found))
    assert groups == ["settings", "store", "transport", "guarantees", "symptoms"]


def test_a_failure_has_exit_code_3_and_a_fix(sqlite_url: str) -> None:
    Stock(sqlite_url).record(Event("order.placed", {}))
    code, found = findings(PILLARBOX_STORE=sqlite_url, PILLARBOX_TRANSPORT="stdout://")
    assert (code, found["symptoms.relays"]["result"]) == (3, "fail")
    assert found["symptoms.relays"]["fix"] == "start one: `pillarbox relay`"


def test_warnings_fail_only_on_request(sqlite_url: str) -> None:
    variables = {"PILLARBOX_STORE": sqlite_url, "PILLARBOX_TRANSPORT": "stdout://"}
    code, found = findings(**variables)
    assert (code, {one["result"] for one in found.values()}) == (0, {"pass", "warn"})
    assert findings("--strict", **variables)[0] == 3
    at_work(Stock(sqlite_url))
    assert findings("--strict", **variables)[0] == 0


def test_doctor_changes_nothing(tmp_path: Path) -> None:
    done = pillarbox("doctor", cwd=tmp_path)
    assert (done.returncode, list(tmp_path.iterdir())) == (3, [])
    assert "there is no file" in done.stdout


def test_a_queue_that_an_event_type_uses_is_checked_before_and_after_its_delivery(
    postgres_url: str, rabbitmq_server: RabbitMQServer
) -> None:
    vhost = f"doctor-{uuid.uuid4().hex[:12]}"
    rabbitmq_server.add_vhosts(vhost)
    variables = {"PILLARBOX_STORE": postgres_url, "PILLARBOX_TRANSPORT": rabbitmq_server.url(vhost)}
    with channel(rabbitmq_server.url(vhost)) as broker:
        broker.queue_declare("order.placed", durable=True, arguments={"x-max-length": 1})
    Stock(postgres_url).record(Event("order.placed", {}))
    for pending in (True, False):
        _, found = findings(**variables)
        assert (found["symptoms.relays"]["result"] == "fail") is pending
        assert found["transport.topology"]["result"] == "warn"
        assert "queue 'order.placed' has x-max-length 1, x-queue-type none" in found["transport.topology"]["message"]
        assert (found["transport.overflow"]["result"], found["transport.queues"]["result"]) == ("fail", "warn")
        assert pillarbox("relay", "--until-empty", cwd=None, **variables).returncode == 0


def test_a_long_transaction_is_reported_with_its_pid(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as other_session:
        other_session.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        other_session.execute("SELECT count(*) FROM outbox_lane")
        _, found = findings("--long-transaction", "0s", PILLARBOX_STORE=postgres_url)
        assert f"pid {other_session.info.backend_pid}" in found["store.horizon"]["message"]
    assert findings(PILLARBOX_STORE=postgres_url)[1]["store.horizon"]["result"] == "pass"


def test_invalid_settings_are_a_failed_check(sqlite_url: str) -> None:
    code, found = findings(PILLARBOX_STORE=sqlite_url, PILLARBOX_RELAY__SEND_TIMEOUT="20s")
    assert (code, list(found)) == (3, ["settings.read"])
    assert "which is PILLARBOX_RELAY__SEND_TIMEOUT (20s)" in found["settings.read"]["message"]


def test_a_memory_store_is_rejected() -> None:
    code, found = findings(PILLARBOX_STORE="memory://")
    assert (code, "exists only in the process" in found["settings.read"]["message"]) == (3, True)


def test_unavailable_servers_are_reported_without_passwords(tmp_path: Path) -> None:
    (tmp_path / "pillarbox.toml").write_text(
        f"[transports.mq]\nurl = 'amqp://app:{CANARY}@127.0.0.1:1/'\n[destinations.orders]\nexchange = 'orders'\n"
    )
    done = pillarbox("doctor", cwd=tmp_path, PILLARBOX_STORE=f"postgresql://app:{CANARY}@127.0.0.1:1/shop")
    assert done.returncode == 3
    lines = done.stdout.splitlines()
    assert [line.split(":")[0] for line in lines if line.startswith("fail")] == [
        "fail  store.reachable",
        "fail  transport.reachable (mq)",
    ]
    assert "guarantees.lease" in done.stdout
    assert CANARY not in done.stdout + done.stderr


def test_results_have_colours_on_a_terminal(sqlite_url: str) -> None:
    shown = at_terminal("doctor", PILLARBOX_STORE=sqlite_url, PILLARBOX_TRANSPORT="stdout://")
    assert (shown.returncode, "\x1b[33mwarn  symptoms.relays" in shown.screen) == (0, True), shown.screen
