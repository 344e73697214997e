"""Checks whether vacuum keeps up with the message table, or what holds it back.

Every delivery deletes a row: if dead rows stay, every fetch scans them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

from pillarbox.admin.diagnosis import CheckResult, OpenTransaction, failed, passed, shortened, warned
from pillarbox.statements import Names

if TYPE_CHECKING:
    import asyncpg

MANY_DEAD_ROWS = 20_000
"""Four times the threshold of autovacuum: it does not run, or cannot remove the rows."""

_LITERAL = re.compile(r"'(?:[^']|'')*'?|\$\w*\$.*", re.DOTALL)


class Ask(Protocol):
    """Runs a named statement."""

    async def __call__(self, statement: str, /, *arguments: object) -> list[asyncpg.Record]: ...


async def server_settings(ask: Ask) -> dict[str, str]:
    """The server's settings that decide on what a commit means and on vacuum."""
    return {row["name"]: row["setting"] for row in await ask("diagnosis_settings")}


async def oldest_transaction(ask: Ask) -> OpenTransaction | None:
    """The transaction that has kept dead rows for the longest time, among those that this role may see."""
    [row, *_] = await ask("diagnosis_transactions", 0)
    if row["pid"] is None:
        return None
    return OpenTransaction(
        pid=row["pid"],
        user=row["usename"] or "",
        application=row["application_name"],
        state=row["state"] or "",
        seconds=row["seconds"],
        query=_masked(row["query"]),
    )


class VacuumChecks:
    """The checks of vacuum."""

    def __init__(self, ask: Ask, names: Names) -> None:
        self._ask = ask
        self._names = names

    async def autovacuum(self) -> CheckResult:
        settings = await server_settings(self._ask)
        if off := [name for name in ("autovacuum", "track_counts") if settings[name] == "off"]:
            return failed(
                f"{' and '.join(off)} is off on the server: the space of delivered events is never reclaimed",
                "set it on in postgresql.conf, and reload",
            )
        options = {row["relname"]: row["options"] for row in await self._ask("diagnosis_options")}
        if disabled := [table for table, given in options.items() if "autovacuum_enabled=false" in given]:
            return failed(
                f"autovacuum is switched off for {', '.join(disabled)}: reads get slower with every delivery",
                "ALTER TABLE … RESET (autovacuum_enabled)",
            )
        hot = f"{self._names.prefix}message"
        if not any(option.startswith("autovacuum_vacuum_scale_factor=") for option in options.get(hot, ())):
            return warned(
                f"{hot} has lost its own settings for autovacuum: it runs too rarely for a queue",
                "ALTER TABLE … SET the options of that table in `pillarbox schema sql`",
            )
        return passed("autovacuum is on, and configured to run often")

    async def bloat(self) -> CheckResult:
        for row in await self._ask("diagnosis_bloat"):
            if row["dead"] > MANY_DEAD_ROWS and row["dead"] > row["live"]:
                return warned(
                    f"{row['relname']} holds about {row['dead']:,} dead rows to {row['live']:,} live ones in "
                    f"{row['bytes'] >> 20:,} MiB",
                    f"the cause: store.horizon, store.prepared or store.autovacuum; then VACUUM {row['relname']}",
                )
        return passed("dead rows are cleared away")

    async def horizon(self, seconds: float) -> CheckResult:
        rows = await self._ask("diagnosis_transactions", seconds)
        if rows[0]["pid"] is not None:
            told = "; ".join(
                f"pid {row['pid']} ({row['usename']}, {row['application_name'] or 'no name'}, {row['state']}) for "
                f"{row['seconds']:.0f} s: {_masked(row['query'])}"
                for row in rows
            )
            return warned(
                f"transactions are open for long, and dead rows stay as long as they are: {told}",
                "end them where they were started, or SELECT pg_terminate_backend(pid); set "
                "idle_in_transaction_session_timeout for that role",
            )
        if hidden := rows[0]["hidden"]:
            return warned(
                f"the transactions of {hidden} sessions cannot be seen by this role",
                "GRANT pg_read_all_stats TO that role",
            )
        return passed(f"no transaction is open for longer than {seconds:g} s")

    async def prepared(self, seconds: float) -> CheckResult:
        rows = await self._ask("diagnosis_prepared", seconds)
        if not rows:
            return passed("no prepared transaction is forgotten")
        told = ", ".join(f"{shortened(row['gid'])!r} of {row['owner']} for {row['seconds']:.0f} s" for row in rows)
        return failed(
            f"prepared transactions wait for their end, hold their locks and keep dead rows: {told}",
            "COMMIT PREPARED or ROLLBACK PREPARED each, as their transaction manager decides",
        )


def _masked(query: str) -> str:
    """A query of another session, shortened and without its literals."""
    return shortened(_LITERAL.sub("'…'", query))
