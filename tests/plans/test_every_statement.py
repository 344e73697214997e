"""Every named statement, in every variant, is one that its database can plan: no name in it is wrong."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import combinations

import asyncpg

from pillarbox.statements import Names, Statement, StatementSet, load
from pillarbox.stores.postgres.statements import PostgresStatements, numbered
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.stores.sqlite.statements import SqliteStatements, each

POSTGRES = Names(schema="public")
# Scripts, which run statement by statement, and what a caller must fill: the tests of the schema run them.
SCRIPTS = {"schema_limit", "schema_register", "schema_create", "schema_migrations", "connection_settings"}


class AnyValue(dict[str, object]):
    """A value for every parameter."""

    def __missing__(self, name: str) -> object:
        return None


def forms(statement: Statement) -> Iterator[tuple[str, ...]]:
    """The plain statement, and every choice of variants of which no two fill the same hole."""
    variants = statement.variants
    for count in range(len(variants) + 1):
        for chosen in combinations(variants, count):
            holes = [hole for variant in chosen for hole in variants[variant]]
            if len(holes) == len(set(holes)):
                yield chosen


def rendered(*sources: StatementSet) -> dict[str, str]:
    return {
        "+".join([statement.name, *chosen]): source.get(statement.name, *chosen)
        for source in sources
        for statement in source.listed()
        if statement.name not in SCRIPTS
        for chosen in forms(statement)
    }


async def test_postgresql_plans_every_statement(postgres_url: str) -> None:
    sources = [StatementSet(POSTGRES, load(f"pillarbox.{package}", "postgres")) for package in ("record", "inbox")]
    connection = await asyncpg.connect(postgres_url)
    refused = {}
    try:
        for name, sql in rendered(PostgresStatements(POSTGRES), *sources).items():
            try:
                await connection.prepare(numbered(sql)[0])
            except asyncpg.PostgresError as error:
                refused[name] = str(error)
    finally:
        await connection.close()
    assert refused == {}


def test_sqlite_plans_every_statement() -> None:
    sources = [StatementSet(Names(), load(f"pillarbox.{package}", "sqlite")) for package in ("record", "inbox")]
    statements = SqliteStatements(Names())
    refused = {}
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.create_function("elapsed", 0, lambda: 0.0)
        connection.executescript(SqliteStore("sqlite:///unused.db").schema.sql())
        for statement in each(statements.script("connection_settings")):
            connection.execute(statement)
        for name, sql in rendered(statements, *sources).items():
            for statement in each(f"{sql};"):
                try:
                    connection.execute(f"EXPLAIN {statement}", AnyValue())
                except sqlite3.Error as error:
                    refused[name] = str(error)
    assert refused == {}


def test_each_engine_has_the_same_fragments_in_its_dialect() -> None:
    postgres, sqlite = (load(f"pillarbox.stores.{engine}", "dialect") for engine in ("postgres", "sqlite"))
    assert postgres.keys() == sqlite.keys()
    assert [one.name for one in (*postgres.values(), *sqlite.values()) if not one.is_fragment] == []
