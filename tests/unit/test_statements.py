"""Themed files of named statements: placeholders, variants and errors."""

import re
from pathlib import Path

import pytest

from pillarbox.statements import Names, StatementSet, load

THEME = """-- A heading of the file.

-- name: fetch
-- Fetch messages.
-- Two lines of purpose.
-- with: bound=9
-- variant of_key: narrowed=of_key
-- variant unbounded: bound=none
SELECT {columns:m.} FROM {message} AS m WHERE m.id < {bound} {narrowed};

-- fragment: columns
-- The columns.
{row}id, {more:row}

-- fragment: more
-- More columns.
{row}payload

-- fragment: of_key
-- Only one key.
AND m.key = $1

-- name: limit
-- Limit something.
SELECT {columns} LIMIT {most}
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """An importable package with an empty folder for SQL."""
    name = f"themes_{abs(hash(request.node.name))}"
    (tmp_path / name / "sql").mkdir(parents=True)
    (tmp_path / name / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    return name


def written(tmp_path: Path, package: str, **themes: str) -> StatementSet:
    for theme, text in themes.items():
        (tmp_path / package / "sql" / f"{theme}.sql").write_text(text, encoding="utf-8")
    return StatementSet(Names(schema="public"), load(package))


def test_names_and_fragments_are_filled_in_without_the_purpose(tmp_path: Path, package: str) -> None:
    statements = written(tmp_path, package, fetch=THEME)
    assert statements.get("fetch") == 'SELECT m.id, m.payload FROM "public"."outbox_message" AS m WHERE m.id < 9 '


def test_a_statement_is_listed_with_its_theme_and_its_purpose(tmp_path: Path, package: str) -> None:
    listed = written(tmp_path, package, fetch=THEME).listed()
    assert [(one.theme, one.name, one.purpose) for one in listed] == [
        ("fetch", "fetch", "Fetch messages. Two lines of purpose."),
        ("fetch", "limit", "Limit something."),
    ]


def test_a_variant_fills_its_placeholders(tmp_path: Path, package: str) -> None:
    statements = written(tmp_path, package, fetch=THEME)
    assert statements.get("fetch", "of_key").endswith("WHERE m.id < 9 AND m.key = $1")
    assert statements.get("fetch", "of_key", "unbounded").endswith("WHERE m.id < none AND m.key = $1")


def test_a_value_of_the_caller_is_never_a_fragment_name(tmp_path: Path, package: str) -> None:
    statements = written(tmp_path, package, fetch=THEME)
    assert statements.get("limit", most="more") == "SELECT id, payload LIMIT more"


def test_a_prefix_is_never_a_fragment_name(tmp_path: Path, package: str) -> None:
    text = "-- name: one\n-- Read it.\nSELECT '{prefix}'\n\n-- fragment: more\n-- More.\nnothing\n"
    written(tmp_path, package, fetch=text)
    assert StatementSet(Names(prefix="more"), load(package)).get("one") == "SELECT 'more'"


def test_an_unfilled_placeholder_is_an_error_that_names_it(tmp_path: Path, package: str) -> None:
    statements = written(tmp_path, package, fetch=THEME)
    with pytest.raises(LookupError, match=re.escape("'limit' asks for {most}")):
        statements.get("limit")
    assert statements.shown("limit") == "SELECT id, payload LIMIT {most}"


def test_an_unknown_name_is_an_error_with_a_suggestion(tmp_path: Path, package: str) -> None:
    with pytest.raises(LookupError, match="there is no SQL statement 'fech': did you mean 'fetch'"):
        written(tmp_path, package, fetch=THEME).get("fech")


def test_a_fragment_is_not_a_statement(tmp_path: Path, package: str) -> None:
    with pytest.raises(LookupError, match="there is no SQL statement 'columns'"):
        written(tmp_path, package, fetch=THEME).get("columns")


def test_an_unknown_variant_is_an_error_that_lists_all(tmp_path: Path, package: str) -> None:
    with pytest.raises(LookupError, match="'fetch' has no variant 'ranged': it has of_key, unbounded"):
        written(tmp_path, package, fetch=THEME).get("fetch", "ranged")


def test_a_duplicate_name_is_an_error_that_names_both_files(tmp_path: Path, package: str) -> None:
    again = "-- name: limit\n-- Limit something else.\nSELECT 1\n"
    with pytest.raises(ValueError, match=r"'limit' is defined twice, in fetch\.sql and more\.sql: rename one"):
        written(tmp_path, package, fetch=THEME, more=again)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("SELECT 1\n", r"one\.sql: SQL before the first `-- name:` line: 'SELECT 1'"),
        ("-- name: one\nSELECT 1\n", r"one\.sql: 'one' has no purpose or no SQL"),
        ("-- name: one\n-- Read it.\n", r"one\.sql: 'one' has no purpose or no SQL"),
        ("-- fragment: message\n-- A row.\nid\n", r"one\.sql: the fragment 'message' is named like a table"),
    ],
)
def test_a_malformed_file_is_an_error(tmp_path: Path, package: str, text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        written(tmp_path, package, one=text)


def test_a_fragment_that_contains_itself_is_an_error(tmp_path: Path, package: str) -> None:
    text = "-- name: one\n-- Read it.\nSELECT {two}\n\n-- fragment: two\n-- Itself.\n{two}\n"
    with pytest.raises(LookupError, match="'one' contains itself"):
        written(tmp_path, package, one=text).get("one")


@pytest.mark.parametrize("engine", ["postgres", "sqlite"])
def test_a_store_has_at_most_ten_themed_files(engine: str) -> None:
    statements = load(f"pillarbox.stores.{engine}").values()
    assert len({statement.theme for statement in statements}) <= 10


@pytest.mark.parametrize("engine", ["postgres", "sqlite"])
def test_every_purpose_is_a_sentence(engine: str) -> None:
    wrong = [
        one.name for one in load(f"pillarbox.stores.{engine}").values() if not re.match("[A-Z].*[.?]", one.purpose)
    ]
    assert wrong == []


@pytest.mark.parametrize("engine", ["postgres", "sqlite"])
def test_every_fragment_is_used(engine: str) -> None:
    statements = {**load(f"pillarbox.stores.{engine}"), **load("pillarbox.stores.admin")}
    scripts = Path(__file__).parents[2] / "src" / "pillarbox" / "stores" / engine / "sql" / "scripts"
    texts = [one.text for one in statements.values()] + [path.read_text() for path in scripts.glob("*.sql")]
    holes = {hole for text in texts for hole in re.findall(r"\{([a-z_0-9]+)", text)}
    for one in statements.values():
        holes |= {*one.values.values(), *(value for variant in one.variants.values() for value in variant.values())}
    assert {name for name, one in statements.items() if one.is_fragment} - holes == set()
