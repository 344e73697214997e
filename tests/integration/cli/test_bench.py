"""`pillarbox bench` measures on real servers, names the limit, and cleans up."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from pillarbox import Event
from pillarbox.ops.bench.report import limited_by
from tests.integration.cli.conftest import Stock
from tests.integration.cli.running import environment, pillarbox
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.waiting import wait_until

OWN = """
SELECT relname::text FROM pg_class WHERE relname LIKE 'bench\\_%'
UNION ALL SELECT proname::text FROM pg_proc WHERE proname LIKE 'bench\\_%'
"""
QUEUES = 'length([Q || Q <- rabbit_amqqueue:list(), re:run(element(4, element(2, Q)), <<"^bench_">>) =/= nomatch])'


def left(url: str) -> list[str]:
    with psycopg.connect(url) as database:
        return [str(row[0]) for row in database.execute(OWN.encode())]


def queues(server: RabbitMQServer) -> int:
    return int(server.evaluate(QUEUES))


@pytest.fixture
def unprivileged_url(postgres_url: str) -> Iterator[str]:
    """A role without the privilege to create tables."""
    with psycopg.connect(postgres_url, autocommit=True) as database:
        database.execute("CREATE ROLE bench_reader LOGIN")
        yield (
            urlsplit(postgres_url)
            ._replace(netloc=f"bench_reader@{urlsplit(postgres_url).netloc.split('@')[1]}")
            .geturl()
        )
        database.execute("DROP ROLE bench_reader")


def test_bench_on_sqlite_reports_all_results_and_removes_its_file(shop: Stock) -> None:
    file = Path(shop.url.removeprefix("sqlite:///"))
    before = file.read_bytes()
    done = pillarbox("bench", "--seconds", "1", PILLARBOX_STORE=shop.url)
    assert done.returncode == 0, done.stderr
    lines = dict(line.split(maxsplit=1) for line in done.stdout.splitlines() if line[:1] != " ")
    assert lines["path"] == "sqlite to a handler that does nothing"
    assert {"rate", "relay", "latency", "alone", "limit"} <= lines.keys()
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir() if "bench" in path.name] == []


def test_bench_on_servers_reports_json_and_removes_tables_and_queue(
    postgres_url: str, rabbitmq_server: RabbitMQServer
) -> None:
    stock = Stock(postgres_url)
    stock.record(Event("order.placed", {}))
    done = pillarbox(
        "bench", "--seconds", "1", "--json", PILLARBOX_STORE=postgres_url, PILLARBOX_TRANSPORT=rabbitmq_server.url()
    )
    assert done.returncode == 0, done.stderr
    reported = json.loads(done.stdout)
    assert reported["store"] == "postgresql"
    assert reported["events"] >= 500
    assert reported["rate"] > 0
    assert reported["cpu_us_per_event"] > 0
    assert 0 < reported["latency_ms"]["p50"] <= reported["latency_ms"]["p99"] <= reported["latency_ms"]["max"]
    assert reported["limits"].keys() == {"relay", "store", "transport"}
    assert reported["limited_by"] == min(reported["limits"], key=reported["limits"].get)
    assert (left(postgres_url), queues(rabbitmq_server)) == ([], 0)
    assert stock.ask("SELECT count(*) FROM outbox_message") == [(1,)]


def test_a_missing_privilege_to_create_tables_is_an_error(unprivileged_url: str, postgres_url: str) -> None:
    done = pillarbox("bench", PILLARBOX_STORE=unprivileged_url)
    assert done.returncode == 1
    assert done.stderr.startswith("pillarbox: the benchmark cannot create its tables: ")
    assert "permission denied" in done.stderr
    assert left(postgres_url) == []


def test_a_missing_permission_to_declare_a_queue_is_an_error(
    postgres_url: str, rabbitmq_server: RabbitMQServer
) -> None:
    rabbitmq_server.add_user("bencher", "secret")
    rabbitmq_server.evaluate(
        'ok = rabbit_auth_backend_internal:set_permissions(<<"bencher">>, <<"/">>, <<"">>, <<".*">>, <<".*">>, <<"t">>)'
    )
    broker = rabbitmq_server.url().replace("guest:guest", "bencher:secret")
    done = pillarbox("bench", PILLARBOX_STORE=postgres_url, PILLARBOX_TRANSPORT=broker)
    assert done.returncode == 1
    assert "the benchmark cannot declare its queue" in done.stderr
    assert "secret" not in done.stderr
    assert left(postgres_url) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_bench_removes_tables_and_queue(
    postgres_url: str, rabbitmq_server: RabbitMQServer, number: signal.Signals
) -> None:
    variables = {"PILLARBOX_STORE": postgres_url, "PILLARBOX_TRANSPORT": rabbitmq_server.url()}
    process = subprocess.Popen(
        [sys.executable, "-m", "pillarbox", "bench", "--seconds", "600"], env=environment(variables)
    )
    try:
        wait_until(lambda: queues(rabbitmq_server) == 1, bound=60, what="the queue is there")
        assert left(postgres_url)
        process.send_signal(number)
        assert process.wait(60) == 130
    finally:
        process.kill()
        process.wait()
    assert (left(postgres_url), queues(rabbitmq_server)) == ([], 0)


def test_an_unknown_transport_is_rejected(shop: Stock) -> None:
    done = pillarbox("bench", "--transport", "kafka", PILLARBOX_STORE=shop.url)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--transport kafka: no broker transport has this name; the settings have none" in done.stderr


def test_the_slowest_part_is_the_limit() -> None:
    assert limited_by({"relay": 30_000.0, "store": 20_000.0, "transport": 25_000.0}) == "store"
    assert limited_by({"relay": 10_000.0, "store": 20_000.0, "transport": None}) == "relay"
