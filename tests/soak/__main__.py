"""`python -m tests.soak`: a long drill with all faults on private servers; memory and connections must stay flat.

SOAK_MINUTES: minutes of load, 30 by default. SOAK_SEED: repeat a schedule. SOAK_REPORT: a file for the report.
SOAK_RATE: events per second.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import secrets
import signal
import sys
from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
from rich.console import Console

from pillarbox.ops.drill import output, report
from pillarbox.ops.drill.options import DrillOptions
from pillarbox.ops.drill.result import DrillResult
from pillarbox.ops.drill.run import DrillRun
from pillarbox.ops.drill.sampling import DrillSnapshot
from pillarbox.ops.drill.target import DrillTarget, SettingsSource, new_name
from tests.servers.postgres import PostgresServer
from tests.servers.rabbitmq import RabbitMQServer
from tests.soak.outages import HookSocket, ServerOutages
from tests.soak.resources import ResourceLog, memory_of

RELAYS = 3
SPARED = 1
SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
CONNECTIONS = "length(rabbit_networking:connections())"
VERSION = "element(2, application:get_key(rabbit, vsn))"


def main() -> int:
    # SIGTERM ends it the way Ctrl-C does, servers included.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    minutes, rate = float(os.environ.get("SOAK_MINUTES", "30")), float(os.environ.get("SOAK_RATE", "300"))
    seed = int(os.environ.get("SOAK_SEED", secrets.randbelow(1 << 32)))
    print(f"SOAK_SEED={seed}", flush=True)
    rng = random.Random(seed)
    with ExitStack() as running:
        folder = Path(running.enter_context(TemporaryDirectory(prefix="pillarbox-soak-")))
        database = running.enter_context(PostgresServer())
        broker = running.enter_context(RabbitMQServer())
        os.environ |= {"PILLARBOX_STORE": database.url(), "PILLARBOX_TRANSPORT": broker.url()}
        version = broker.evaluate(VERSION).strip().strip('"')
        outages = {
            "database": ServerOutages(database, rng, "kill", "stop"),
            "broker": ServerOutages(broker, rng, "kill", "stop", "freeze"),
        }
        hooks = running.enter_context(closing(HookSocket(folder, outages)))
        options = DrillOptions(
            seed=seed,
            seconds=minutes * 60,
            rate=rate,
            relays=RELAYS,
            spared=SPARED,
            cut_database=hooks.command("database", "cut"),
            restore_database=hooks.command("database", "restore"),
            cut_broker=hooks.command("broker", "cut"),
            restore_broker=hooks.command("broker", "restore"),
        )
        processes: dict[str, int] = {}
        log = ResourceLog(
            {
                "MiB of a relay": lambda: _memory(processes, "relay"),
                "MiB of the audit": lambda: _memory(processes, "audit"),
                "sessions of PostgreSQL": lambda: _sessions(database),
                "connections of RabbitMQ": lambda: _connections(broker),
            }
        )
        log.start()
        ledgers = folder / "drill"
        ledgers.mkdir()
        result = asyncio.run(_drill(options, ledgers, processes))
        log.stop()
    fields = result.as_json() | {
        "transport_version": version,
        "outages": {name: one.used for name, one in outages.items()},
        "resources": log.as_json(),
        "not_flat": log.violations(),
    }
    if path := os.environ.get("SOAK_REPORT"):
        Path(path).write_text(json.dumps(fields) + "\n", encoding="utf-8")
    Console(highlight=False, width=110).print(report.table(fields))
    print(json.dumps(fields["resources"], indent=1))
    for line in fields["not_flat"]:
        print(f"NOT FLAT: {line}", file=sys.stderr)
    return 0 if result.conclusion == "passed" and not fields["not_flat"] else 1


async def _drill(options: DrillOptions, folder: Path, processes: dict[str, int]) -> DrillResult:
    source = SettingsSource()
    target = DrillTarget.of(source.load(), name=new_name())
    with output.progress_lines(
        f"PostgreSQL → relays → RabbitMQ, seed {options.seed}", Console(highlight=False)
    ) as show:

        def show_and_find(snapshot: DrillSnapshot) -> None:
            show(snapshot)
            processes.update(snapshot.processes)

        return await DrillRun(source, target, options, folder=folder, show=show_and_find).run()


def _memory(processes: Mapping[str, int], kind: str) -> float | None:
    """Of the first process of a kind: it is never killed."""
    names = sorted((name for name in processes if name.startswith(kind)), key=lambda name: int(name.split("-")[1]))
    return memory_of(processes[names[0]]) if names else None


def _sessions(database: PostgresServer) -> float | None:
    try:
        with psycopg.connect(database.url(), connect_timeout=2) as connection:
            return float(_first(connection.execute(SESSIONS).fetchone()))
    except psycopg.Error:
        return None


def _first(row: Any) -> Any:
    return row[0]


def _connections(broker: RabbitMQServer) -> float | None:
    try:
        return float(broker.evaluate(CONNECTIONS))
    except Exception:  # it is cut off
        return None


if __name__ == "__main__":
    raise SystemExit(main())
