"""Themed files of named statements: placeholders, variants and errors."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from pillarbox import TableNames, dialects
from pillarbox.statements import NamedStatement, Names, StatementSet, load_statements
from pillarbox.stores.mariadb.statements import MariaDBStatements
from pillarbox.stores.postgres.statements import PostgresStatements
from pillarbox.stores.sqlite.statements import SqliteStatements

ENGINES = {"mariadb": MariaDBStatements, "postgres": PostgresStatements, "sqlite": SqliteStatements}
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
    return StatementSet(Names(schema="public"), load_statements(package))


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
    assert StatementSet(Names(prefix="more"), load_statements(package)).get("one") == "SELECT 'more'"


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
    ("text", "reported"),
    [
        ("SELECT 1\n", r"one\.sql: SQL before the first `-- name:` line: 'SELECT 1'"),
        ("-- name: one\nSELECT 1\n", r"one\.sql: 'one' has no purpose or no SQL"),
        ("-- name: one\n-- Read it.\n", r"one\.sql: 'one' has no purpose or no SQL"),
        ("-- fragment: message\n-- A row.\nid\n", r"one\.sql: the fragment 'message' is named like a table"),
    ],
)
def test_a_malformed_file_is_an_error(tmp_path: Path, package: str, text: str, reported: str) -> None:
    with pytest.raises(ValueError, match=reported):
        written(tmp_path, package, one=text)


def test_a_fragment_that_contains_itself_is_an_error(tmp_path: Path, package: str) -> None:
    text = "-- name: one\n-- Read it.\nSELECT {two}\n\n-- fragment: two\n-- Itself.\n{two}\n"
    with pytest.raises(LookupError, match="'one' contains itself"):
        written(tmp_path, package, one=text).get("one")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_store_has_at_most_ten_themed_files(engine: str) -> None:
    statements = load_statements(f"pillarbox.stores.{engine}").values()
    assert len({statement.theme for statement in statements}) <= 10


@pytest.mark.parametrize("engine", ENGINES)
def test_every_purpose_is_a_sentence(engine: str) -> None:
    wrong = [
        one.name
        for one in load_statements(f"pillarbox.stores.{engine}").values()
        if not re.match("[A-Z].*[.?]", one.purpose)
    ]
    assert wrong == []


SQL = re.compile(
    r"\bSELECT\b.+\bFROM\b|\bINSERT (INTO|IGNORE)\b|\bUPDATE \S+ SET\b|\bDELETE FROM\b"
    r"|\b(UNION|WHERE|ORDER BY|GROUP BY|SAVEPOINT|LISTEN|NOTIFY)\b|\bIN \("
    r"|\b(AND|OR) \w+ (=|<|>|IN|IS)|^\s*(AND|OR)\s*$"
    r"|\bSESSION \S+ =|\bSTART TRANSACTION .|^\s*SET [A-Z]|^\s*PRAGMA \w+\s*[=;(]"
    r"|^\s*(CREATE|DROP|ALTER) [A-Z]+ ([\"`{]|IF\b)",
    re.DOTALL,
)


def texts(module: ast.Module) -> Iterator[str]:
    """The strings of a module, without its docstrings; `{}` for each value in one."""
    parts = {id(part) for node in ast.walk(module) if isinstance(node, ast.JoinedStr) for part in node.values}
    docstrings = {id(node.value) for node in ast.walk(module) if isinstance(node, ast.Expr)}
    for node in ast.walk(module):
        if isinstance(node, ast.JoinedStr):
            yield "".join(literal(part) or "{}" for part in node.values)
        elif (text := literal(node)) and id(node) not in parts | docstrings:
            yield text


def literal(node: ast.AST) -> str | None:
    """The text of a string in the source."""
    value: object = getattr(node, "value", None)
    return value if isinstance(value, str) else None


def test_no_module_contains_sql() -> None:
    """BEGIN and its like, COMMIT and ROLLBACK are the exception."""
    package = Path(__file__).parents[2] / "src" / "pillarbox"
    found = [
        (str(path.relative_to(package)), text)
        for path in sorted(package.rglob("*.py"))
        for text in texts(ast.parse(path.read_text(encoding="utf-8")))
        if SQL.search(text)
    ]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 FROM outbox_message",
        "\nUNION ALL\n",
        "(destination = :{} AND id IN ({}))",
        " OR ",
        ", SESSION {} = {}",
        "START TRANSACTION READ ONLY",
        'DROP TABLE "{}"',
    ],
)
def test_sql_is_recognized(text: str) -> None:
    assert SQL.search(text)


def test_every_fragment_is_used() -> None:
    shared = {**load_statements("pillarbox.stores.admin"), **load_statements("pillarbox.stores")}
    used_by_all = set[str]()
    for engine in ENGINES:
        own = load_statements(f"pillarbox.stores.{engine}")
        scripts = Path(__file__).parents[2] / "src" / "pillarbox" / "stores" / engine / "sql" / "scripts"
        used = used_in([*own.values(), *shared.values()], *(path.read_text() for path in scripts.glob("*.sql")))
        used_by_all |= used
        assert fragments(own) - used == set()
    # An engine may have another way: not every engine uses all of the shared ones.
    assert fragments(shared) - used_by_all == set()


def fragments(statements: Mapping[str, NamedStatement]) -> set[str]:
    return {name for name, one in statements.items() if one.is_fragment}


def used_in(statements: Iterable[NamedStatement], *scripts: str) -> set[str]:
    """What the holes of statements and scripts ask for, and what fills them."""
    used = set[str]()
    for one in statements:
        given = (one.values, one.examples, *one.variants.values())
        used |= {value for values in given for value in values.values()}
        scripts += (one.text,)
    return used | {hole for script in scripts for hole in re.findall(r"\{([a-z_0-9]+)", script)}


@pytest.mark.parametrize("engine", ENGINES)
def test_every_statement_is_shown_as_it_is_sent(engine: str) -> None:
    dialect = dialects.find(engine)
    names = dialect.names(TableNames())
    sources = (ENGINES[engine](names), dialect.statements(names))
    shown = {one.name: source.shown(one.name) for source in sources for one in source.listed()}
    assert {name: sql for name, sql in shown.items() if re.search(r"\{[a-z]", sql)} == {}


def test_an_example_is_shown_and_never_sent(tmp_path: Path, package: str) -> None:
    text = """
-- name: one
-- Read some lanes.
-- example: lanes=lane
SELECT {lanes}

-- name: lane
-- Read a lane: a part of one.
-- example: number=7
(SELECT {number})
"""
    statements = written(tmp_path, package, one=text)
    assert statements.shown("one") == "SELECT (SELECT 7)"
    assert statements.get("one", lanes="1") == "SELECT 1"
    with pytest.raises(LookupError, match=r"'one' asks for \{lanes\}"):
        statements.get("one")
