"""Checks of a MariaDB server for `pillarbox doctor`: the right server, its settings, its indexes, open transactions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta

from pillarbox.admin.diagnosis import (
    EXAMINED,
    LONG_TRANSACTION,
    MANY_ATTEMPTS,
    Check,
    CheckResult,
    OpenTransaction,
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
from pillarbox.core.errors import SchemaError, StoreUnavailableError
from pillarbox.stores.mariadb.connection import MariaDBStoreConnection
from pillarbox.stores.mariadb.driver import Rows
from pillarbox.stores.mariadb.history import MAX_MOVED, HistoryDays
from pillarbox.stores.mariadb.schema import MariaDBSchema
from pillarbox.stores.mariadb.statements import MariaDBStatements
from pillarbox.stores.mariadb.tls import VERIFIED

TIMEOUTS = {"max_statement_time": "5", "innodb_lock_wait_timeout": "1", "lock_wait_timeout": "1"}
"""Short, because an operator waits and no other session should."""
LONG_PURGE = 1_000_000
"""Transactions whose old rows are not purged, above which the check warns."""
ROOM = 1 << 20
"""Bytes of a statement besides the payload of one event."""
_LITERAL = re.compile(r"'(?:[^'\\]|\\.|'')*'?", re.DOTALL)
_KEY = re.compile(r"^  (?:UNIQUE )?KEY (\w{1,64}) \(", re.MULTILINE)


class MariaDBDiagnosis:
    """See `pillarbox.admin.diagnosis.Diagnosis`."""

    def __init__(
        self,
        connection: MariaDBStoreConnection,
        statements: MariaDBStatements,
        schema: MariaDBSchema,
        *,
        history: bool,
        max_payload: int,
    ) -> None:
        self._connection = connection
        self._statements = statements
        self._schema = schema
        self._history = history
        self._max_payload = max_payload
        self._days = HistoryDays(connection, statements)

    def checks(self, *, long_transaction: float = LONG_TRANSACTION) -> Sequence[Check]:
        found = [
            Check(name="store.reachable", ask=self._reachable, prerequisite=True),
            Check(name="store.primary", ask=self._primary),
            Check(name="store.isolation", ask=self._isolation),
            Check(name="store.encryption", ask=self._encryption),
            Check(name="store.durability", ask=self._durability),
            Check(name="store.packet", ask=self._packet),
            *schema_checks(self._schema),
            Check(name="store.indexes", ask=self._indexes),
            Check(name="store.horizon", ask=lambda: self._horizon(long_transaction)),
            Check(name="store.purge", ask=self._purge),
        ]
        if self._history:
            found.append(Check(name="store.history", ask=self._tomorrow))
        return found

    async def retried(self, more_than: int = MANY_ATTEMPTS) -> RetriedSummary:
        rows = await self._ask("diagnosis_retried", first=EXAMINED, more_than=more_than)
        return commonest((error, event_id) for error, event_id in rows)

    async def table_sizes(self) -> TableSizes:
        parts = [
            TableSize(f"{table}_{part}" if part else table, rows, None, size, table if part else "")
            for table, part, rows, size in await self._ask("diagnosis_table_sizes")
        ]
        try:
            open_ones = await self._open_transactions(0)
        except SchemaError:  # without the privilege PROCESS
            open_ones = []
        return TableSizes(parts, open_ones[0] if open_ones else None)

    async def _reachable(self) -> CheckResult:
        try:
            [(version, database, user, *_)] = await self._ask("diagnosis_server")
        except StoreUnavailableError as error:
            return failed(
                str(error), "is the server up, is the address right, are user and password; from this machine"
            )
        except SchemaError as error:
            return failed(str(error), "set store.url to a MariaDB server, or upgrade it")
        return passed(f"MariaDB {version}, database {database}, as {user}")

    async def _primary(self) -> CheckResult:
        [(_, _, _, read_only, _)] = await self._ask("diagnosis_server")
        if read_only:
            return failed(
                "the server is read-only, as a replica is: nothing can be settled here", "set store.url to the primary"
            )
        return passed("the server accepts writes")

    async def _isolation(self) -> CheckResult:
        [(_, _, _, _, isolation)] = await self._ask("diagnosis_server")
        if isolation != "READ-COMMITTED":
            return failed(
                f"the isolation level of a session is {isolation}: relays and producers would lock each other out",
                "a proxy keeps back what a connection asks for: give relays and operators the server's own address",
            )
        return passed("sessions have the isolation level READ COMMITTED")

    async def _encryption(self) -> CheckResult:
        address = self._connection.address
        if address.is_local:
            return passed("the server is on this machine")
        [(encrypted,)] = await self._ask("diagnosis_encryption")
        fix = f"take ssl_mode={address.mode} out of store.url, or write ssl_mode={VERIFIED}"
        if not encrypted:
            return failed(f"passwords and payloads go to {address.host} in clear (ssl_mode={address.mode})", fix)
        if address.mode != VERIFIED:
            return warned(
                f"ssl_mode={address.mode} does not verify that {address.host} is the server it claims to be", fix
            )
        return passed("the connection is encrypted, and the server's certificate verified")

    async def _durability(self) -> CheckResult:
        [(flush, log_bin, sync_binlog, binlog_format, doublewrite, _)] = await self._ask("diagnosis_settings")
        if log_bin and binlog_format == "STATEMENT":
            return failed(
                "binlog_format is STATEMENT: InnoDB refuses every write of a relay",
                "set binlog_format to ROW or MIXED in the configuration of the server",
            )
        if not doublewrite:
            return failed(
                "innodb_doublewrite is off: a power cut may destroy tables", "set innodb_doublewrite = ON, and restart"
            )
        if flush != 1:
            return warned(
                f"innodb_flush_log_at_trx_commit is {flush}: a power cut may lose the last second of committed events",
                "set innodb_flush_log_at_trx_commit = 1",
            )
        if log_bin and sync_binlog != 1:
            return warned(
                f"sync_binlog is {sync_binlog}: after a power cut the binary log may lack committed events",
                "set sync_binlog = 1",
            )
        return passed("a commit is on the disk before it is confirmed")

    async def _packet(self) -> CheckResult:
        [(*_, packet)] = await self._ask("diagnosis_settings")
        # A byte of a payload may take two in a statement.
        needed = 2 * self._max_payload + ROOM
        if packet < needed:
            return failed(
                f"max_allowed_packet is {packet:,} bytes; an event of max_payload may need {needed:,}",
                f"set max_allowed_packet = {needed} for server and clients, or lower max_payload",
            )
        return passed("the largest event fits into a statement")

    async def _indexes(self) -> CheckResult:
        found = {(table, index) for table, index in await self._ask("diagnosis_indexes")}
        prefix = self._statements.names.prefix
        missing = [
            f"{index} of {table}"
            for table in (f"{prefix}message", f"{prefix}history")
            for index in self._index_names(table)
            if (table, index) not in found
        ]
        if not missing:
            return passed("every index is there")
        return failed(
            f"fetches read whole tables or fail: missing {', '.join(missing)}",
            "make the indexes anew as `pillarbox schema sql` has them",
        )

    async def _horizon(self, seconds: float) -> CheckResult:
        try:
            found = await self._open_transactions(seconds)
        except SchemaError:
            return warned(
                "the user may not see the transactions of others", "GRANT PROCESS ON *.* to it, or ask an administrator"
            )
        if found:
            told = "; ".join(f"connection {one.pid} ({one.user}, {one.state}) for {one.seconds:.0f} s" for one in found)
            return warned(
                f"transactions stay open and keep old rows, which fetches have to skip: {told}",
                "end what they belong to, or KILL the connection",
            )
        return passed("no transaction has been open for long")

    async def _purge(self) -> CheckResult:
        [(length,)] = await self._ask("diagnosis_purge")
        if length > LONG_PURGE:
            return warned(
                f"old rows of {length:,} transactions are not purged: fetches have to skip them",
                "the cause is a long transaction, see store.horizon; or more innodb_purge_threads",
            )
        return passed("old rows are purged")

    async def _tomorrow(self) -> CheckResult:
        if await self._days.today() + timedelta(days=1) in await self._days.found():
            return passed("there is a partition for what is delivered tomorrow")
        if await self._days.without_a_day() > MAX_MOVED:
            return warned(
                f"tomorrow has no partition, and the partition `later` has over {MAX_MOVED:,} rows, which a relay does "
                "not move because nothing could be settled meanwhile",
                "run `pillarbox schema apply` in a quiet hour, as a user with ALTER, CREATE, DROP and INSERT on the "
                "history",
            )
        return warned(
            "tomorrow has no partition: what is delivered then goes to the partition `later`, to be deleted by rows",
            "run a relay, which makes them; its user needs ALTER, CREATE, DROP and INSERT on the history",
        )

    async def _open_transactions(self, seconds: float) -> list[OpenTransaction]:
        return [
            OpenTransaction(
                pid=pid,
                user=user,
                application="",
                state=state,
                seconds=age,
                query=shortened(_LITERAL.sub("'…'", query)),
            )
            for pid, user, state, age, query in await self._ask("diagnosis_transactions", seconds=seconds)
        ]

    async def _ask(self, statement: str, **given: object) -> Rows:
        return await self._connection.fetch(self._statements.get(statement), given)

    def _index_names(self, table: str) -> list[str]:
        scripts = "\n".join(script for _, script in self._statements.migrations().values())
        _, _, rest = scripts.partition(f"`{table}` (")
        return _KEY.findall(rest.partition("ENGINE =")[0])
