"""`pillarbox schema`, as text and as JSON."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.integration.cli import running
from tests.servers.ports import free_port


def pillarbox(*arguments: str, store: str = "", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return running.pillarbox(*arguments, cwd=cwd, PILLARBOX_STORE=store)


@pytest.fixture
def sqlite_store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'shop.db'}"


@pytest.fixture(params=["sqlite_store", "empty_postgres_url"])
def store(request: pytest.FixtureRequest) -> str:
    """A store without tables: one of each engine."""
    url: str = request.getfixturevalue(request.param)
    return url


def test_apply_creates_the_tables(store: str) -> None:
    assert pillarbox("schema", "check", store=store).returncode == 1
    first = pillarbox("schema", "apply", store=store)
    assert (first.returncode, first.stdout[:7]) == (0, "applied"), first
    again = pillarbox("schema", "apply", store=store)
    assert (again.returncode, again.stdout) == (0, "the tables are up to date\n")
    assert pillarbox("schema", "check", store=store).returncode == 0


def test_every_command_has_json(store: str) -> None:
    before = json.loads(pillarbox("schema", "status", "--json", store=store).stdout)
    assert (before["ok"], before["version"]) == (False, 0)
    assert before["pending"]
    applied = json.loads(pillarbox("schema", "apply", "--json", store=store).stdout)
    assert applied == {"applied": before["pending"]}
    assert json.loads(pillarbox("schema", "check", "--json", store=store).stdout) == {"ok": True}
    after = json.loads(pillarbox("schema", "status", "--json", store=store).stdout)
    assert after == {
        "ok": True,
        "version": before["required"],
        "required": before["required"],
        "pending": [],
        "problems": [],
    }


def test_sizes_lists_tables_or_the_file(store: str) -> None:
    pillarbox("schema", "apply", store=store)
    reported = json.loads(pillarbox("schema", "sizes", "--json", store=store).stdout)
    assert reported["bytes"] == sum(part["bytes"] for part in reported["tables"]) > 0
    lines = pillarbox("schema", "sizes", store=store).stdout.splitlines()
    assert lines[0] == "table\trows\tdead rows\tsize"
    assert {line.split("\t")[0] for line in lines[1:]} == {part["name"] for part in reported["tables"]}


def test_the_printed_sql_runs_in_the_shell_of_the_database(tmp_path: Path, sqlite_store: str) -> None:
    script = pillarbox("schema", "sql", "--aliases", store=sqlite_store).stdout
    subprocess.run(["sqlite3", "-bail", tmp_path / "shop.db"], input=script, text=True, check=True)
    assert pillarbox("schema", "check", store=sqlite_store).returncode == 0


def test_the_grants_are_printed_for_postgresql_only(empty_postgres_url: str, sqlite_store: str) -> None:
    grants = pillarbox("schema", "sql", "--roles", "shop_owner", store=empty_postgres_url)
    assert 'GRANT INSERT ON "public"."outbox_message" TO "pillarbox_producer"' in grants.stdout
    refused = pillarbox("schema", "sql", "--roles", "shop_owner", store=sqlite_store)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)


def test_the_default_store_is_a_file_in_the_current_folder(tmp_path: Path) -> None:
    assert pillarbox("schema", "apply", cwd=tmp_path).returncode == 0
    assert (tmp_path / "pillarbox.db").exists()


@pytest.mark.parametrize("url", ["oracle://app:canary-password@db/shop", "canary-password", "postgresql://[::1/shop"])
def test_an_invalid_url_is_a_usage_error_of_one_line_without_the_password(url: str) -> None:
    result = pillarbox("schema", "apply", store=url)
    assert (result.returncode, result.stderr.count("\n")) == (2, 1), result.stderr
    assert "canary-password" not in result.stderr


def test_an_unavailable_database_is_an_error_of_one_line() -> None:
    result = pillarbox("schema", "apply", store=f"postgresql://app:canary-password@127.0.0.1:{free_port()}/shop")
    assert (result.returncode, result.stderr.count("\n")) == (1, 1), result.stderr
    assert "canary-password" not in result.stderr


def test_help_has_examples() -> None:
    result = pillarbox("schema", "--help")
    assert "pillarbox schema sql | psql -1 shop" in result.stdout


def test_the_statements_are_listed_with_their_purpose(store: str) -> None:
    lines = [line.split("\t") for line in pillarbox("schema", "statements", store=store).stdout.splitlines()]
    assert lines[0] == ["name", "theme", "purpose", "variants"]
    listed = {name: (theme, purpose, variants) for name, theme, purpose, variants in lines[1:]}
    theme, purpose, variants = listed["fetch_ready"]
    assert (theme, variants.split()[0]) == ("fetch", "in_range")
    assert purpose.startswith("Fetch events that are ready")
    assert {listed["append"][0], listed["admit"][0]} == {"record", "inbox"}
    reported = json.loads(pillarbox("schema", "statements", "--json", store=store).stdout)
    assert {
        one["name"]: (one["theme"], one["purpose"], " ".join(one["variants"])) for one in reported["statements"]
    } == listed


def test_every_statement_is_printed_as_it_is_sent(store: str) -> None:
    listed = json.loads(pillarbox("schema", "statements", "--json", store=store).stdout)["statements"]
    assert {"acquire_lanes", "deliver", "prune_history", "append", "admit"} <= {one["name"] for one in listed}
    printed = pillarbox("schema", "statements", "acquire_lanes", store=store)
    assert printed.returncode == 0
    assert 'outbox_lane"' in printed.stdout
    assert "--" not in printed.stdout.splitlines()[0]
    ranged = json.loads(pillarbox("schema", "statements", "fetch_ready+in_range", "--json", store=store).stdout)
    assert (ranged["name"], ranged["theme"], ranged["variants"][0]) == ("fetch_ready", "fetch", "in_range")
    assert "outside" in ranged["sql"]
    assert "outside" not in pillarbox("schema", "statements", "fetch_ready", store=store).stdout


@pytest.mark.parametrize(
    ("wrong", "reported"),
    [
        ("fetch_redy", "there is no SQL statement 'fetch_redy': did you mean 'fetch_ready'?"),
        ("nothing_like_it", "`pillarbox schema statements` lists the names"),
        ("fetch_ready+backwards", "has no variant 'backwards': it has in_range"),
    ],
)
def test_an_unknown_statement_is_an_error_with_a_suggestion(sqlite_store: str, wrong: str, reported: str) -> None:
    answer = pillarbox("schema", "statements", wrong, store=sqlite_store)
    assert answer.returncode == 2
    assert reported in answer.stderr


def test_the_memory_store_sends_no_statements() -> None:
    answer = pillarbox("schema", "statements", store="memory://")
    assert answer.returncode == 2
    assert "the memory store sends no SQL" in answer.stderr


@pytest.mark.parametrize("command", ["sql", "apply", "check", "status", "sizes"])
def test_the_memory_store_has_no_schema(command: str) -> None:
    answer = pillarbox("schema", command, store="memory://")
    assert answer.returncode == 2
    assert "memory:// exists only in the process that opened it" in answer.stderr
