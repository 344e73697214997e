"""What exists is documented: errors, commands, tables, columns, fields of an event, capabilities, named tests."""

import re
from collections.abc import Iterator
from dataclasses import fields

import click
import pytest

import pillarbox
from pillarbox.core.event import Event
from pillarbox.core.store import Store
from pillarbox.ops.cli.root import pillarbox as command_line
from pillarbox.schemes import open_source
from tests.docs.matrix import SOURCES, filled
from tests.docs.nodes import NODE, exists
from tests.docs.pages import PAGES, ROOT, blocks

DOCS = ROOT / "docs"
MIGRATIONS = ROOT / "src/pillarbox/stores/postgres/sql/migrations"


def page(path: str) -> str:
    return (DOCS / path).read_text(encoding="utf-8")


ERRORS = [name for name in pillarbox.__all__ if name.endswith("Error")]


@pytest.mark.parametrize("error", ERRORS)
def test_every_error_is_documented(error: str) -> None:
    [retryable] = re.findall(rf"^\| `{error}` \| (yes|no|) *\|", page("reference/errors.md"), re.MULTILINE)
    assert (retryable == "yes") is getattr(pillarbox, error).retryable


def test_the_facets_of_a_store_are_documented() -> None:
    facets = {name for name, value in vars(Store).items() if isinstance(value, property)} - {"capabilities"}
    assert set(re.findall(r"^\| `(\w+)` \| `\w+`", page("how-to/write-a-store.md"), re.MULTILINE)) == facets


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("stdout", "stdout://"),
        ("RabbitMQ", "amqp://h"),
        ("webhook", "https://h"),
        ("NATS", "nats://h"),
        ("Kafka", "kafka://h"),
        ("Redis", "redis://h"),
    ],
)
def test_the_matrix_says_where_a_consumer_can_receive(name: str, url: str) -> None:
    if name in SOURCES:
        assert open_source(url, "orders", group="billing") is not None
    else:
        with pytest.raises(pillarbox.ConfigurationError, match="nothing can be received"):
            open_source(url, "orders")


def test_the_documented_tree_of_errors_matches_the_classes() -> None:
    drawn = re.findall(r"^((?:[│ ]   )*(?:[├└]── )?)(\w+)", blocks(DOCS / "reference/errors.md", "")[0], re.MULTILINE)
    parents: list[str] = []
    for branch, name in drawn:
        depth = len(branch) // 4
        assert getattr(pillarbox, name).__base__.__name__ == (parents[depth - 1] if depth else "Exception")
        parents[depth:] = [name]
    assert sorted(name for _, name in drawn) == sorted(ERRORS)


def commands(command: click.Command, path: str) -> Iterator[str]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from commands(child, f"{path} {name}")
    else:
        yield path


@pytest.mark.parametrize("command", list(commands(command_line, "pillarbox")))
def test_every_command_is_documented(command: str) -> None:
    assert f"`{command}" in page("reference/cli.md")


@pytest.mark.parametrize("field", [field.name for field in fields(Event)])
def test_every_field_of_an_event_is_documented(field: str) -> None:
    assert f"`{field}`" in page("reference/events.md")


def test_every_table_and_view_is_documented() -> None:
    sql = "".join(path.read_text(encoding="utf-8") for path in sorted(MIGRATIONS.glob("*.sql")))
    tables = set(re.findall(r"^CREATE (?:TABLE|VIEW) \{(\w+)\}", sql, re.MULTILINE)) - {"history_default"}
    names = {f"outbox_{name}" for name in tables}
    assert len(names) > 12
    assert sorted(name for name in names if f"`{name}`" not in page("reference/schema.md")) == []


def test_every_column_for_producers_is_documented() -> None:
    sql = (MIGRATIONS / "0001_initial.sql").read_text(encoding="utf-8")
    table = sql[sql.index("CREATE TABLE {message}") : sql.index("PRIMARY KEY (event_id, destination)")]
    columns = re.findall(r"^  ([a-z_]+) +(?:bigint|text|smallint|bytea|jsonb|integer|timestamptz)", table, re.MULTILINE)
    assert len(columns) > 20
    assert [column for column in columns if f"`{column}`" not in page("reference/schema.md")] == []


def test_the_capabilities_are_those_of_the_stores_and_transports() -> None:
    shown = page("reference/capabilities.md")
    assert shown == filled(shown), "stale: run `make docs`"


NAMED_PLACES = re.findall(r"`((?:tests|src)/[\w/.]+)`", page("explanation/guarantees.md"))


@pytest.mark.parametrize("path", NAMED_PLACES)
def test_every_test_named_in_the_guarantees_exists(path: str) -> None:
    place = ROOT / path
    files = [place] if place.suffix else list(place.rglob("*.py"))
    assert any("def test_" in file.read_text(encoding="utf-8") or "@rule" in file.read_text() for file in files)


def test_the_guarantees_name_tests() -> None:
    assert len(NAMED_PLACES) >= 12


def test_every_single_test_that_a_page_names_exists() -> None:
    named = {node for path in PAGES for node in NODE.findall(path.read_text(encoding="utf-8"))}
    assert len(named) > 100
    assert sorted(node for node in named if not exists(node)) == []


def test_decisions_are_numbered_in_their_order() -> None:
    pages = sorted(path.name for path in (DOCS / "decisions").glob("0*.md"))
    assert [int(name[:4]) for name in pages] == list(range(1, len(pages) + 1))
    listed = re.findall(r"^- \[(\d{4} .+)\]\((.+)\)$", page("decisions/README.md"), re.MULTILINE)
    assert listed == [(page(f"decisions/{name}").splitlines()[0].removeprefix("# "), name) for name in pages]
