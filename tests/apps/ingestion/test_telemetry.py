"""Metrics, health and traces of every process of the service."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.apps.ingestion.running import BOUND, Consuming, Running, Service, ingestion
from tests.apps.telemetry import TO_STDOUT, metric, spans, tree
from tests.servers.ports import free_port
from tests.servers.waiting import wait_until

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
EXPECTED = {
    "POST /api/v1/documents": "",
    "create DocumentUploaded": "POST /api/v1/documents",
    "send uploaded": "create DocumentUploaded",
    "process DocumentUploaded": "create DocumentUploaded",
    "create DocumentValidated": "process DocumentUploaded",
    "send validated": "create DocumentValidated",
    "process DocumentValidated": "create DocumentValidated",
}


def consuming(command: str, folder: Path, **variables: str) -> tuple[Consuming, str]:
    address = f"127.0.0.1:{free_port()}"
    return Consuming(command, folder, variables | {"INGESTION_METRICS": address}), address


def test_one_trace_and_the_metrics_of_three_processes(database: str, broker: str, tmp_path: Path) -> None:
    variables = {"INGESTION_STORE": database, "INGESTION_TRANSPORT": broker} | TO_STDOUT
    validate, validate_at = consuming("validate", tmp_path, **variables)
    enrich, enrich_at = consuming("enrich", tmp_path, **variables)
    with Service(folder=tmp_path, **variables) as service, validate as validating, enrich as enriching:
        document = service.upload(**PARENT).json()
        service.wait_for(document["id"], "ENRICHED")
        here = f"127.0.0.1:{service.port}"
        wait_until(lambda: metric(here, "outbox_published_count_total") == 2, bound=BOUND, what="both are published")
        wait_until(lambda: metric(here, "outbox_backlog_gauge") == 0, bound=BOUND, what="nothing waits")
        # Under the names of the guide, and under those of the library.
        for name in ("outbox_published_total", "outbox_publish_duration_seconds_count"):
            assert metric(here, name) == 2, name
        for name in ("outbox_failed_count_total", "outbox_retry_count_total", "outbox_failed_total"):
            assert metric(here, name) == 0, name
        assert metric(here, "outbox_recorded_total", event_type="DocumentUploaded") == 1
        assert metric(here, "outbox_store_up") == 1
        assert metric(here, "http_requests_total", method="POST", route="/api/v1/documents", status="201") == 1
        for address, consumer in ((validate_at, "validation-service"), (enrich_at, "enrichment-service")):
            handled = {"consumer": consumer, "result": "processed"}
            wait_until(
                lambda address=address, handled=handled: metric(address, "inbox_events_total", **handled) == 1,  # type: ignore[misc]
                bound=BOUND,
                what=f"{consumer} counts its event",
            )
            health = httpx.get(f"http://{address}/health")
            assert (health.status_code, health.json()["consumers"]) == (200, {consumer: True})
            assert httpx.get(f"http://{address}/health/live").json() == {"status": "UP"}
        processes: list[Running] = [service, validating, enriching]
        wait_until(lambda: len(traced(processes)) >= len(EXPECTED), bound=BOUND, what="the whole trace")
        assert traced(processes) == EXPECTED
        assert len([span for span in spans(service.log_text()) if span.name == "POST /api/v1/documents"]) == 1


def traced(processes: list[Running]) -> dict[str, str]:
    return tree((process.log_text() for process in processes), TRACE)


def test_without_a_broker_one_process_exports_the_whole_trace(store: str, tmp_path: Path) -> None:
    with Service(folder=tmp_path, INGESTION_STORE=store, **TO_STDOUT) as service:
        service.wait_for(service.upload(**PARENT).json()["id"], "ENRICHED")
        steps = set(EXPECTED) - {"send uploaded", "send validated"}
        wait_until(lambda: steps <= set(traced([service])), bound=BOUND, what="the whole trace")
        address = f"127.0.0.1:{service.port}"
        assert metric(address, "inbox_events_total", consumer="enrichment-service", result="processed") == 1


def test_a_failed_attempt_counts_under_the_names_of_the_guide(database: str, tmp_path: Path) -> None:
    nowhere = f"amqp://guest:guest@127.0.0.1:{free_port()}/"
    count = {"OUTBOX_PUBLISHER_OUTAGES": "count", "OUTBOX_PUBLISHER_INITIAL_RETRY_DELAY": "1ms"}
    variables = {"INGESTION_STORE": database, "INGESTION_TRANSPORT": nowhere, "OUTBOX_PUBLISHER_MAX_RETRIES": "1"}
    with Service(folder=tmp_path, **variables, **count) as service:
        service.upload()
        here = f"127.0.0.1:{service.port}"
        wait_until(lambda: metric(here, "outbox_failed_count_total") == 2, bound=BOUND, what="two attempts failed")
        assert metric(here, "outbox_retry_count_total") == 1
        assert metric(here, "outbox_dead_letters") == 1


@pytest.mark.parametrize("address", ["8082", "127.0.0.1:0", "127.0.0.1:70000", "nowhere.invalid:8082"])
def test_an_invalid_metrics_address_is_an_error_at_the_start(address: str, tmp_path: Path) -> None:
    done = ingestion("validate", cwd=tmp_path, INGESTION_TRANSPORT="amqp://a:b@mq/", INGESTION_METRICS=address)
    assert (done.returncode, "INGESTION_METRICS" in done.stderr) == (2, True)


def test_a_missing_span_exporter_is_an_error_at_the_start(tmp_path: Path) -> None:
    done = ingestion("serve", cwd=tmp_path, OTEL_TRACES_EXPORTER="carrier-pigeon")
    assert done.returncode == 2
    assert "'carrier-pigeon', which is not installed; installed: console" in done.stderr
