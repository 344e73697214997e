"""Every named statement, in every variant, is one that its database can plan: no name in it is wrong."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import combinations

import asyncpg

from pillarbox import PillarboxError, TableNames, dialects
from pillarbox.statements import NamedStatement, Names, StatementSet, load_statements
from pillarbox.stores.mariadb.connection import MariaDBStoreConnection
from pillarbox.stores.mariadb.statements import MariaDBStatements
from pillarbox.stores.postgres.statements import PostgresStatements, numbered
from pillarbox.stores.splitting import split_statements
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.stores.sqlite.statements import SqliteStatements

POSTGRES = Names(schema="public")
# Scripts, which run statement by statement, and what a caller must fill: the tests of the schema run them.
SCRIPTS = {
    "connection_settings",
    "drop_scratch_tables",
    "schema_create_if_missing",
    "schema_limit",
    "schema_migrations",
    "schema_no_timeout",
    "schema_refuse_pending",
    "schema_register",
    "schema_reset_timeout",
    "schema_unregister",
}


class AnyValue(dict[str, object]):
    """A value for every parameter."""

    def __missing__(self, name: str) -> object:
        return None


def forms(statement: NamedStatement) -> Iterator[tuple[str, ...]]:
    """The plain statement, and every choice of variants of which no two fill the same hole."""
    variants = statement.variants
    for count in range(len(variants) + 1):
        for chosen in combinations(variants, count):
            holes = [hole for variant in chosen for hole in variants[variant]]
            if len(holes) == len(set(holes)):
                yield chosen


def rendered(*sources: StatementSet) -> dict[str, str]:
    return {
        "+".join([statement.name, *chosen]): source.shown(statement.name, *chosen)
        for source in sources
        for statement in source.listed()
        if statement.name not in SCRIPTS
        for chosen in forms(statement)
    }


async def test_postgresql_plans_every_statement(postgres_url: str) -> None:
    connection = await asyncpg.connect(postgres_url)
    refused = {}
    try:
        for name, sql in rendered(PostgresStatements(POSTGRES), dialects.find("postgres").statements(POSTGRES)).items():
            try:
                await connection.prepare(numbered(sql)[0])
            except asyncpg.PostgresError as error:
                refused[name] = str(error)
    finally:
        await connection.close()
    assert refused == {}


def test_sqlite_plans_every_statement() -> None:
    statements = SqliteStatements(Names())
    refused = {}
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.create_function("elapsed", 0, lambda: 0.0)
        connection.executescript(SqliteStore("sqlite:///unused.db").schema.sql())
        for statement in split_statements(statements.script("connection_settings")):
            connection.execute(statement)
        for name, sql in rendered(statements, dialects.find("sqlite").statements(Names())).items():
            for statement in split_statements(f"{sql};"):
                try:
                    connection.execute(f"EXPLAIN {statement}", AnyValue())
                except sqlite3.Error as error:
                    refused[name] = str(error)
    assert refused == {}


# EXPLAIN does not take these: no queries, or parts of a statement that is explained.
NOT_EXPLAINED = {
    "session_settings",
    "session_isolation",
    "snapshot_isolation",
    "begin_snapshot",
    "create_settlement",
    "schema_create_migrations",
    *("begin_parts", "undo_parts", "end_parts"),
    *("create_history_days", "drop_history_days", "history_day", "skip_in_flight"),
    *("appended_row", "appended_row_encoded"),
    *("add_part", "session_setting"),
    *SCRIPTS,
}
_NUMBER = re.compile(r"(?:LIMIT|OFFSET) :([a-z_]+)")


def sample(sql: str) -> dict[str, object]:
    """A number after LIMIT and OFFSET, otherwise an empty list."""
    numbers = set(_NUMBER.findall(sql))
    names = set(re.findall(r"(?<![:\w'\[]):([a-z_]+)", sql))
    given: dict[str, object] = {name: 1 if name in numbers else "[]" for name in names if not name.endswith("_in")}
    return (
        given
        | {name: "[]" for name in names if "_and_" in name}
        | {name.removesuffix("_in"): [1] for name in names if name.endswith("_in")}
    )


async def test_mariadb_plans_every_statement(mariadb_url: str) -> None:
    names = dialects.find("mariadb").names(TableNames())
    known = MariaDBStatements(names)
    connection = MariaDBStoreConnection(mariadb_url)
    await connection.run(known.get("create_settlement"))
    refused = {}
    for source in (known, dialects.find("mariadb").statements(names)):
        for statement in source.listed():
            for chosen in forms(statement):
                if statement.name in NOT_EXPLAINED:
                    continue
                # What the store fills is shown by examples. The parameters of the dialect are numbered.
                sql = re.sub(r"\$\d+", "NULL", source.shown(statement.name, *chosen))
                try:
                    await connection.run(f"EXPLAIN {sql}", sample(sql))
                except PillarboxError as error:
                    refused["+".join([statement.name, *chosen])] = str(error)
    await connection.aclose()
    assert refused == {}


def test_each_engine_has_the_same_fragments_in_its_dialect() -> None:
    loaded = [load_statements(f"pillarbox.stores.{engine}", "dialect") for engine in ("postgres", "sqlite", "mariadb")]
    # What only one engine needs stands in its other files, or is a part of another fragment there.
    parts = {"of_waiting_queue", "of_first", "number_of_state"}
    assert loaded[0].keys() == loaded[1].keys() == loaded[2].keys() - parts
    assert [one.name for engine in loaded for one in engine.values() if not one.is_fragment] == []
