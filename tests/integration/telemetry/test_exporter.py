"""`pillarbox exporter`: the backlog is visible without a relay, and two outboxes are told apart by a label."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import pillarbox
from pillarbox import Event, Outbox
from tests.integration.cli.running import fresh_pillarbox
from tests.integration.telemetry.processes import exporter, relay


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    assert fresh_pillarbox("schema", "apply", cwd=tmp_path).returncode == 0
    with closing(sqlite3.connect(tmp_path / "pillarbox.db")) as connection, connection:
        Outbox().record(connection, Event("order.placed", {}), Event("order.placed", {}))
    return tmp_path


def test_the_backlog_is_visible_while_no_relay_runs(shop: Path) -> None:
    with exporter(shop) as pages:
        assert pages.value("outbox_backlog", outbox="pillarbox") == 2.0
        assert pages.value("outbox_relays", outbox="pillarbox") == 0.0
        assert [pages.get(path).status_code for path in ("/livez", "/readyz", "/health")] == [200] * 3
        with relay(shop, PILLARBOX_TRANSPORT="stdout://"):
            pages.until("outbox_backlog", 0.0, outbox="pillarbox")
            pages.until("outbox_relays", 1.0, outbox="pillarbox")


def test_a_store_without_tables_is_reported_and_not_ready(tmp_path: Path) -> None:
    with exporter(tmp_path) as pages:
        assert pages.value("outbox_store_up", outbox="pillarbox") == 0.0
        assert pages.value("outbox_backlog", outbox="pillarbox") is None
        assert (pages.get("/livez").status_code, pages.get("/readyz").status_code) == (200, 503)
        assert fresh_pillarbox("schema", "apply", cwd=tmp_path).returncode == 0
        pages.until("outbox_store_up", 1.0, outbox="pillarbox")


def test_the_label_names_the_outbox(shop: Path) -> None:
    with exporter(shop, PILLARBOX_STORE__NAME="billing") as pages:
        assert pages.value("outbox_backlog", outbox="billing") == 2.0


def test_every_process_shows_its_release_and_its_use_of_the_machine(shop: Path) -> None:
    with exporter(shop) as exported, relay(shop, PILLARBOX_TRANSPORT="stdout://") as relayed:
        for pages in (exported, relayed):
            [build] = pages.labels("outbox_build_info")
            assert (build["version"], build["outbox"]) == (pillarbox.__version__, "pillarbox")
            assert (pages.value("process_resident_memory_bytes", outbox="pillarbox") or 0) > 1_000_000
            assert (pages.value("process_open_fds", outbox="pillarbox") or 0) > 3


@pytest.mark.parametrize("listen", ["nonsense", "127.0.0.1:99999", "127.0.0.1:http", "127.0.0.1:-1"])
def test_an_address_that_is_none_is_refused(shop: Path, listen: str) -> None:
    done = fresh_pillarbox("exporter", "--listen", listen, cwd=shop)
    assert (done.returncode, "is not HOST:PORT" in done.stderr) == (2, True), done.stderr
