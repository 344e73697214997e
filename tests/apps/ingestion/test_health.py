"""`/health`, and the responses during outages."""

from __future__ import annotations

import resource
from pathlib import Path

import psycopg
import pytest

from tests.apps.ingestion.running import BOUND, Consuming, Running, Service, migrate
from tests.integration.telemetry.test_idle_connections import DESCRIPTORS, half_a_body, idle_connections
from tests.servers.availability import available
from tests.servers.ports import free_port
from tests.servers.postgres import PostgresServer
from tests.servers.waiting import wait_until


def test_a_backlog_beyond_the_limit_is_down(database: str, tmp_path: Path) -> None:
    off = {"INGESTION_STORE": database, "INGESTION_RELAY": "off", "INGESTION_MAX_BACKLOG": "2"}
    with Service(folder=tmp_path, **off) as service:
        for _ in range(2):
            service.upload()
        assert service.client.get("/health").json()["status"] == "UP"
        service.upload()
        answer = service.client.get("/health")
    assert (answer.status_code, answer.json()["reason"]) == (503, "more than 2 events are pending")


@pytest.mark.parametrize(
    "begin",
    [b"GET /health HTTP/1.1\r\n", half_a_body("/api/v1/documents", "application/json")],
    ids=["half a request", "half a body"],
)
def test_idle_connections_block_neither_requests_nor_the_relay(database: str, tmp_path: Path, begin: bytes) -> None:
    with Service(folder=tmp_path, INGESTION_STORE=database) as service:
        resource.prlimit(service.started.pid, resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
        with idle_connections(f"127.0.0.1:{service.port}", begin):
            service.wait_for(service.upload().json()["id"], "ENRICHED")
            assert service.client.get("/health").json()["status"] == "UP"
        assert len(service.log_text()) < 100_000


def test_an_internal_error_is_a_problem_with_the_correlation_id_of_the_log(database: str, tmp_path: Path) -> None:
    with Service(folder=tmp_path, INGESTION_STORE=database, INGESTION_RELAY="off") as service:
        with psycopg.connect(database) as connection:
            connection.execute("DROP TABLE documents")
        answer = service.upload()
        assert (answer.status_code, answer.headers["Content-Type"]) == (500, "application/problem+json")
        assert answer.json()["correlationId"] == answer.headers["X-Correlation-ID"]
        wait_until(lambda: service.has_logged(answer.json()["correlationId"]), bound=BOUND, what="the id is in the log")


def test_processes_log_and_wait_for_a_database_that_starts_later(tmp_path: Path) -> None:
    with available(lambda: PostgresServer(durable=False)) as server:
        variables = {"INGESTION_STORE": migrate(server.url(), tmp_path)}
        server.stop()
        nowhere = {"INGESTION_TRANSPORT": f"amqp://guest:guest@127.0.0.1:{free_port()}/", "INGESTION_METRICS": "off"}
        processes = [Running("serve", tmp_path, variables | {"INGESTION_LISTEN": f"127.0.0.1:{free_port()}"})]
        processes.append(Running("validate", tmp_path, variables | nowhere))
        named = "Database is unavailable, retrying"
        for process in processes:
            wait_until(lambda process=process: process.has_logged(named), bound=BOUND, what=named)  # type: ignore[misc]
        server.start()
        for process, ready in zip(processes, (Service.ready, Consuming.ready), strict=True):
            wait_until(lambda process=process, ready=ready: process.has_logged(ready), bound=BOUND, what=ready)  # type: ignore[misc]
            assert process.stop() == 0


def test_the_service_reports_a_database_outage_and_recovers(tmp_path: Path) -> None:
    with available(lambda: PostgresServer(durable=False)) as server:
        store = migrate(server.url(), tmp_path)
        with Service(folder=tmp_path, INGESTION_STORE=store) as service:
            document = service.upload().json()
            service.wait_for(document["id"], "ENRICHED")
            server.stop()
            answer = service.upload()
            assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
            assert answer.headers["Content-Type"] == "application/problem+json"
            health = service.client.get("/health")
            assert (health.status_code, health.json()["database"]) == (503, "DOWN")
            assert service.client.get("/health/live").status_code == 200
            server.start()
            again = service.upload()
            assert again.status_code == 201
            service.wait_for(again.json()["id"], "ENRICHED")
            wait_until(
                lambda: service.client.get("/health").status_code == 200, bound=BOUND, what="the service is UP again"
            )
