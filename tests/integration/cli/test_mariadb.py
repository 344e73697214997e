"""The command line on MariaDB."""

import json

from tests.integration.cli.running import pillarbox
from tests.servers.mariadb import MariaDBServer


def test_from_an_empty_database_to_a_recorded_event(empty_mariadb_url: str) -> None:
    assert "do not exist yet" in pillarbox("schema", "status", PILLARBOX_STORE=empty_mariadb_url).stdout
    applied = pillarbox("schema", "apply", PILLARBOX_STORE=empty_mariadb_url)
    assert (applied.returncode, "0001_initial" in applied.stdout) == (0, True), applied.stderr
    assert pillarbox("schema", "status", PILLARBOX_STORE=empty_mariadb_url).returncode == 0
    recorded = pillarbox("record", "order.placed", '{"id": 42}', "--key", "o-42", PILLARBOX_STORE=empty_mariadb_url)
    assert recorded.returncode == 0, recorded.stderr
    listed = pillarbox("events", "list", "--json", PILLARBOX_STORE=empty_mariadb_url)
    assert listed.returncode == 0, listed.stderr
    assert "o-42" in listed.stdout
    status = pillarbox("status", "--json", PILLARBOX_STORE=empty_mariadb_url)
    assert status.returncode in (0, 1), status.stderr
    assert json.loads(status.stdout)


def test_statements_are_printed_as_they_are_sent(mariadb_url: str) -> None:
    shown = pillarbox("schema", "statements", "lock_lanes", PILLARBOX_STORE=mariadb_url)
    assert (shown.returncode, "FOR UPDATE" in shown.stdout) == (0, True), shown.stderr
    script = pillarbox("schema", "sql", PILLARBOX_STORE=mariadb_url)
    assert (script.returncode, "PARTITION BY RANGE COLUMNS" in script.stdout) == (0, True), script.stderr


def test_roles_and_compatibility_views_are_clear_errors(mariadb_url: str) -> None:
    for arguments in (
        ("schema", "sql", "--roles", "owner"),
        ("schema", "sql", "--aliases"),
        ("schema", "apply", "--aliases"),
    ):
        failed = pillarbox(*arguments, PILLARBOX_STORE=mariadb_url)
        assert failed.returncode == 2, failed.stderr
        assert "mariadb://" in failed.stderr


def test_the_doctor_examines_the_server(mariadb_url: str) -> None:
    examined = pillarbox("doctor", PILLARBOX_STORE=mariadb_url)
    assert "store.isolation" in examined.stdout, examined.stderr
    assert "store.packet" in examined.stdout


def test_the_benchmark_leaves_no_tables(mariadb_url: str, mariadb_server: MariaDBServer) -> None:
    measured = pillarbox("bench", "--seconds", "1", PILLARBOX_STORE=mariadb_url)
    assert measured.returncode == 0, measured.stderr + measured.stdout
    database = mariadb_url.rpartition("/")[2]
    left = mariadb_server.execute(f"SHOW TABLES FROM {database} LIKE 'bench%'")
    assert left == []
