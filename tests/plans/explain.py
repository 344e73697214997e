"""How much a statement really reads: rows and pages of the hot table, not time."""

import json
from dataclasses import dataclass
from typing import Any

import asyncpg

from pillarbox.stores.postgres.arrays import literal
from pillarbox.stores.postgres.connection import SETTINGS
from pillarbox.stores.postgres.statements import numbered

OURS = ("outbox_",)


@dataclass(frozen=True, slots=True)
class Cost:
    """What one statement touched."""

    rows: int
    """Rows of outbox_message read by any scan, including discarded ones."""
    pages: int
    returned: int
    everywhere: int
    """Rows read by any scan of any table of the outbox."""
    compared: int
    """Rows that any node of the plan returned or discarded, including those of joins."""
    plan: str

    def __str__(self) -> str:
        return f"{self.rows} rows and {self.pages} pages for {self.returned} results\n{self.plan}"


class Explainer:
    """Runs statements as the store does, under EXPLAIN ANALYZE, and takes everything back."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def cost_of_named(self, sql: str, *, prepare: str = "", **given: object) -> Cost:
        """The cost of a statement of the operators' half, which takes its parameters by name."""
        sent, names = numbered(sql)
        return await self.cost(sent, *(given[name] for name in names), prepare=prepare)

    async def cost(self, sql: str, *arguments: object, prepare: str = "") -> Cost:
        settings = dict(SETTINGS) | {"plan_cache_mode": "force_custom_plan"}
        connection = await asyncpg.connect(self._url, server_settings=settings)
        try:
            await connection.execute("BEGIN")
            if prepare:
                await connection.execute(prepare)
            explained = await connection.fetchval(
                f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}", *_sent(sql, arguments)
            )
            await connection.execute("ROLLBACK")
        finally:
            await connection.close()
        [plan] = json.loads(explained)
        return cost_of(plan["Plan"])


def _sent(sql: str, arguments: tuple[object, ...]) -> list[object]:
    """Arrays as the store sends them: as one text where the statement takes them so."""
    return [
        literal(argument) if isinstance(argument, list) and f"${number}::text::" in sql else argument
        for number, argument in enumerate(arguments, start=1)
    ]


def cost_of(root: dict[str, Any]) -> Cost:
    """The cost of a plan as EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) shows it."""
    pages = root["Shared Hit Blocks"] + root["Shared Read Blocks"]
    returned = round(root["Actual Rows"] * root["Actual Loops"])
    return Cost(_rows(root), pages, returned, _rows(root, everywhere=True), _compared(root), _outline(root))


def _rows(node: dict[str, Any], *, everywhere: bool = False) -> int:
    own = 0
    table = node.get("Relation Name", "")
    ours = table.startswith(OURS) if everywhere else table == "outbox_message"
    if ours and "Scan" in node["Node Type"]:
        thrown_away = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
        own = round((node["Actual Rows"] + thrown_away) * node["Actual Loops"])
    return own + sum(_rows(child, everywhere=everywhere) for child in node.get("Plans", ()))


def _compared(node: dict[str, Any]) -> int:
    thrown_away = sum(value for name, value in node.items() if name.startswith("Rows Removed by"))
    own: int = round((node["Actual Rows"] + thrown_away) * node["Actual Loops"])
    return own + sum(_compared(child) for child in node.get("Plans", ()))


def _outline(node: dict[str, Any], depth: int = 0) -> str:
    # An average per loop, with a fraction since PostgreSQL 18.
    line = (
        f"{'  ' * depth}{node['Node Type']} {node.get('Index Name') or node.get('Relation Name') or ''} "
        f"rows={node['Actual Rows']:.0f} removed={node.get('Rows Removed by Filter', 0)} loops={node['Actual Loops']}"
    )
    return "\n".join([line, *(_outline(child, depth + 1) for child in node.get("Plans", ()))])
