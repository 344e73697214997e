"""Checks of a PostgreSQL server for `pillarbox doctor`: the right server, its privileges, its settings, vacuum.

Every check is one statement in a read-only transaction with a short statement_timeout.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pillarbox.admin.diagnosis import (
    EXAMINED,
    LONG_TRANSACTION,
    MANY_ATTEMPTS,
    Check,
    CheckResult,
    RetriedSummary,
    TableSize,
    TableSizes,
    commonest,
    failed,
    passed,
    schema_checks,
    shortened,
    warned,
)
from pillarbox.core.errors import StoreUnavailableError
from pillarbox.core.text import noun
from pillarbox.stores.postgres import tls
from pillarbox.stores.postgres.connection import PostgresStoreConnection
from pillarbox.stores.postgres.schema import PostgresSchema
from pillarbox.stores.postgres.statements import PostgresStatements
from pillarbox.stores.postgres.vacuum import VacuumChecks, oldest_transaction, server_settings

if TYPE_CHECKING:
    import asyncpg

TIMEOUTS = {"statement_timeout": "5s", "lock_timeout": "1s", "default_transaction_read_only": ""}
"""Short, because an operator waits and no other session should. The last one keeps the default of the server, which
producers have as well."""

_POOLER = ("unsupported startup parameter", "pooling mode", "prepared statement")
"""Parts of errors that only a connection pooler raises."""
_POOLER_FIX = (
    "give relays and operators the server's own address; behind PgBouncer, a database of their own with "
    "pool_mode = session and ignore_startup_parameters. Producers may stay behind transaction pooling"
)
_RELAY = "pillarbox_relay"
_GRANT = re.compile(rf'GRANT ([A-Z, ]+) ON (?:(SCHEMA|SEQUENCE|FUNCTION) )?([^;]+?) TO [^;]*"{_RELAY}"')
_QUALIFIED = re.compile(r'"(\w+)"\."(\w+)"')
_INDEX = re.compile(r'^CREATE INDEX (?:CONCURRENTLY )?"(\w+)"', re.MULTILINE)


class Right(NamedTuple):
    """A right that a relay needs."""

    kind: str
    name: str
    privilege: str


class PostgresDiagnosis:
    """See `pillarbox.admin.diagnosis.Diagnosis`."""

    def __init__(
        self,
        connection: PostgresStoreConnection,
        another: PostgresStoreConnection,
        statements: PostgresStatements,
        schema: PostgresSchema,
        *,
        history: bool,
    ) -> None:
        self._connection = connection
        self._another = another
        self._statements = statements
        self._schema = schema
        self._history = history

    def checks(self, *, long_transaction: float = LONG_TRANSACTION) -> Sequence[Check]:
        vacuum = VacuumChecks(self._ask, self._statements.names)
        found = [
            Check(name="store.reachable", ask=self._reachable, prerequisite=True),
            Check(name="store.primary", ask=self._primary),
            Check(name="store.pooling", ask=self._pooling),
            Check(name="store.encryption", ask=self._encryption),
            Check(name="store.durability", ask=self._durability),
            Check(name="store.grants", ask=self._grants),
            *schema_checks(self._schema),
            Check(name="store.indexes", ask=self._indexes),
            Check(name="store.autovacuum", ask=vacuum.autovacuum),
            Check(name="store.bloat", ask=vacuum.bloat),
            Check(name="store.horizon", ask=lambda: vacuum.horizon(long_transaction)),
            Check(name="store.prepared", ask=lambda: vacuum.prepared(long_transaction)),
        ]
        if self._history:
            found.append(Check(name="store.history", ask=self._days))
        return found

    async def retried(self, more_than: int = MANY_ATTEMPTS) -> RetriedSummary:
        rows = await self._ask("diagnosis_retried", EXAMINED, more_than)
        return commonest((error, event_id) for error, event_id in rows)

    async def table_sizes(self) -> TableSizes:
        parts = [TableSize._make(row) for row in await self._ask("diagnosis_table_sizes")]
        return TableSizes(parts, await oldest_transaction(self._ask))

    async def _reachable(self) -> CheckResult:
        try:
            [server] = await self._ask("diagnosis_server")
        except StoreUnavailableError as error:
            said = str(error)
            if any(mark in said for mark in _POOLER):
                return failed(f"the connection goes through a pooler: {said}", _POOLER_FIX)
            return failed(said, "check that the server runs, and host, port, user and password in store.url")
        return passed(f"PostgreSQL {server['version']}, database {server['database']}, as {server['role']}")

    async def _primary(self) -> CheckResult:
        [server] = await self._ask("diagnosis_server")
        if server["standby"]:
            return failed("this is a standby: nothing can be settled here", "set store.url to the primary")
        if server["read_only"]:
            return failed(
                "transactions are read-only by default here",
                "ALTER DATABASE … RESET default_transaction_read_only, or the same for the role",
            )
        return passed("this is the primary")

    async def _pooling(self) -> CheckResult:
        sql = self._statements.get("diagnosis_session")
        try:
            async with self._connection.open() as mine, self._another.open() as other:
                [(before, heard)] = await mine.fetch(sql)
                async with other.transaction(readonly=True):
                    [(others, _)] = await other.fetch(sql)
                    [(after, _)] = await mine.fetch(sql)
        except StoreUnavailableError as error:
            if not any(mark in str(error) for mark in _POOLER):
                raise
            return failed(f"the connection goes through a pooler: {shortened(str(error), most=300)}", _POOLER_FIX)
        finally:
            await self._another.aclose()
        if before != after or before == others:
            return failed(
                "a pooler gives each transaction another session: a relay's notifications, prepared statements and "
                "timeouts are lost between transactions",
                _POOLER_FIX,
            )
        if not heard:
            return warned("a pooler drops the startup parameters: the relay's timeouts are not in force", _POOLER_FIX)
        return passed("each connection has a session of its own")

    async def _encryption(self) -> CheckResult:
        url = self._connection.url
        if not (beyond := tls.hosts_beyond(url)):
            return passed("the server is on this machine")
        mode = tls.mode_of(url) or tls.VERIFIED
        [(encrypted,)] = await self._ask("diagnosis_encryption")
        fix = f"take sslmode={mode} out of store.url, or write sslmode={tls.VERIFIED}"
        if not encrypted:
            return failed(f"passwords and payloads go to {', '.join(beyond)} in clear (sslmode={mode})", fix)
        if mode != tls.VERIFIED:
            return warned(f"sslmode={mode} does not verify that {', '.join(beyond)} is the server it claims to be", fix)
        return passed("the connection is encrypted, and the server's certificate verified")

    async def _durability(self) -> CheckResult:
        settings = await server_settings(self._ask)
        if off := [name for name in ("fsync", "full_page_writes") if settings[name] == "off"]:
            return failed(
                f"{' and '.join(off)} {noun(len(off), 'is', 'are')} off: "
                "a power cut may lose committed events, or the whole database",
                f"set {noun(len(off), 'it', 'them')} to on in postgresql.conf, and reload",
            )
        if settings["synchronous_commit"] == "off":
            return warned(
                "synchronous_commit is off: a power cut may lose the last committed events",
                "set it to on, at least for producers: ALTER ROLE … SET synchronous_commit = on",
            )
        return passed("a commit is on the disk before it is confirmed")

    async def _grants(self) -> CheckResult:
        rights = list(self._rights())
        kinds, names, privileges = zip(*rights, strict=True)
        rows = await self._ask("diagnosis_grants", kinds, names, privileges, self._statements.names.schema)
        if not rows:
            return passed("the role may do what a relay does")
        lacking = ", ".join(f"{row['privilege']} on {row['name']}" for row in rows[:5])
        more = f" and {len(rows) - 5} more" * (len(rows) > 5)
        return failed(
            f"the role lacks {lacking}{more}",
            "`pillarbox schema sql --roles OWNER` prints the grants; or run this with the relay's own role",
        )

    async def _indexes(self) -> CheckResult:
        rows = await self._ask("diagnosis_indexes", self._index_names(), self._statements.names.schema)
        if not rows:
            return passed("every index is there and valid")
        told = ", ".join(f"{row['name']} ({'missing' if row['missing'] else 'invalid'})" for row in rows)
        return failed(
            f"fetches read whole tables: {told}",
            "DROP INDEX CONCURRENTLY what is invalid, then recreate it with the statement of `pillarbox schema sql`",
        )

    async def _days(self) -> CheckResult:
        [(there,)] = await self._ask("diagnosis_days")
        if there:
            return passed("the partition for tomorrow's history exists")
        return warned(
            "tomorrow's history partition is missing: rows go to the default partition, which retention cannot drop",
            "run a relay, which creates the partitions; its role needs EXECUTE on the function that creates them",
        )

    async def _ask(self, statement: str, *arguments: object) -> list[asyncpg.Record]:
        async with self._connection.open() as connection, connection.transaction(readonly=True):
            return await connection.fetch(self._statements.get(statement), *arguments)

    def _rights(self) -> Iterator[Right]:
        """The rights that `roles.sql` grants to the role of a relay."""
        script = self._schema.roles_sql(producer="p", relay=_RELAY, reader="r", migrator="m", owner="o")
        for privileges, kind, things in _GRANT.findall(script):
            names = [things.strip('"')] if kind == "SCHEMA" else [name for _, name in _QUALIFIED.findall(things)]
            for name in names:
                yield from (Right(kind or "TABLE", name, privilege) for privilege in privileges.split(", "))

    def _index_names(self) -> list[str]:
        scripts = "\n".join(script for _, script in self._statements.migrations().values())
        return _INDEX.findall(scripts)
