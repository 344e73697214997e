"""`python -m tests.large [history] [pending] [dead]`: every page of the console, every reading of its API and every
listing of the command line on full tables.

Prints how long each took and how many statements it was, and fails if one of them counts rows off, if a scan reads
more than its bound, or if an answer is none.
"""

import asyncio
import re
import sys
import time
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import asyncpg
import httpx
from rich.console import Console as Terminal
from rich.table import Table

from pillarbox.console import Console, NoLogin
from pillarbox.stores.postgres import PostgresStore
from tests.console.test_statements import MOST
from tests.integration.cli.running import fresh_pillarbox
from tests.large.loading import load
from tests.servers.postgres import PostgresServer

PAGES = MOST | {
    "/replay": 1,
    "/replay?key=ORDER:7": 1,
    "/replay?destination=d3": 20,
    "/events?status=PUBLISHED": 1,
    "/events?status=FAILED": 1,
    "/events?type=order.paid": 5,
    "/events?key=ORDER:7": 5,
    "/events?destination=d3": 5,
    "/events?aggregate=ORDER&error=timeout": 5,
    "/event?id=h77": 5,
    "/dead/decide?action=retry": 20,
    "/dead?view=list": 6,
    "/api/v1/events": 1,
    "/api/v1/dead": 6,
}
LISTINGS = (
    ("status",),
    ("events", "list"),
    ("events", "list", "--type", "order.paid"),
    ("events", "list", "--key", "ORDER:7"),
    ("events", "list", "--status", "PUBLISHED"),
    ("events", "show", "h77"),
    ("dead", "list"),
    ("dead", "list", "--error", "timeout"),
    ("dead", "groups"),
    ("keys", "busiest"),
    ("keys", "blocked"),
    ("destinations", "list"),
    ("relays", "list"),
    ("audit", "list"),
    ("inbox", "list"),
    ("schema", "sizes"),
    ("prune", "--dry-run"),
    ("replay", "--type", "order.lost", "--dry-run"),
    ("replay", "--destination", "nowhere", "--dry-run"),
    ("doctor",),
)
OFFSET = re.compile(r"\bOFFSET\b", re.IGNORECASE)
COUNTED = re.compile(r"count\(\*\)\s+FROM\s+\"", re.IGNORECASE)
"""A count straight over a table; over a bounded subquery it is `count(*) FROM (`."""
Row = tuple[str, float, str, str]


async def pages(url: str) -> list[Row]:
    sent: list[str] = []
    fetch = asyncpg.Connection.fetch

    async def noting(connection: Any, query: str, *arguments: Any, **options: Any) -> Any:
        sent.append(query)
        return await fetch(connection, query, *arguments, **options)

    setattr(asyncpg.Connection, "fetch", noting)  # noqa: B010 - it hears what the store says
    rows = []
    async with aclosing(PostgresStore(url, statement_timeout="10s")) as store:
        transport = httpx.ASGITransport(app=Console(store, login=NoLogin("large")))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8980", timeout=60) as client:
            await client.get("/relays")
            for path, most in PAGES.items():
                sent.clear()
                began = time.perf_counter()
                answer = await client.get(path)
                took = time.perf_counter() - began
                wrong = list(_wrong(sent, most=most))
                if answer.status_code != 200:
                    wrong.append(f"answered {answer.status_code}")
                rows.append((path, took, str(len(sent)), "; ".join(wrong)))
    setattr(asyncpg.Connection, "fetch", fetch)  # noqa: B010
    return rows


def _wrong(sent: list[str], *, most: int) -> Iterator[str]:
    if len(sent) > most:
        yield f"{len(sent)} statements, {most} are allowed"
    for query in sent:
        if OFFSET.search(query):
            yield "a statement counts rows off (OFFSET)"
        if COUNTED.search(query):
            yield "a statement counts a table"


def listings(url: str) -> Iterator[Row]:
    for arguments in LISTINGS:
        began = time.perf_counter()
        done = fresh_pillarbox(*arguments, "--json", PILLARBOX_STORE=url)
        took = time.perf_counter() - began
        # A doctor who finds something says so with 3.
        fine = done.returncode == 0 or (arguments == ("doctor",) and done.returncode == 3)
        yield "pillarbox " + " ".join(arguments), took, "", "" if fine else done.stderr.strip()


def main() -> int:
    history, pending, dead = (
        int(given) for given in (*sys.argv[1:], *("5000000", "200000", "50000")[len(sys.argv) - 1 :])
    )
    with PostgresServer(settings={"shared_buffers": "512MB", "max_wal_size": "4GB"}) as server:
        began = time.perf_counter()
        url = load(server, history=history, pending=pending, dead=dead)
        print(
            f"{history:,} of history, {pending:,} pending, {dead:,} dead, loaded in {time.perf_counter() - began:.0f} s"
        )
        rows = [*asyncio.run(pages(url)), *listings(url)]
    table = Table("page or command", "ms", "statements", "wrong")
    for name, took, statements, wrong in rows:
        table.add_row(name, f"{took * 1000:,.0f}", statements, wrong)
    Terminal(width=140).print(table)
    return 1 if any(wrong for *_, wrong in rows) else 0


if __name__ == "__main__":
    raise SystemExit(main())
