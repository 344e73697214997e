"""`python -m tests.soak`: a long drill with all faults on private servers; memory and connections must stay flat.

By default PostgreSQL → RabbitMQ for 30 minutes, as `make soak` runs it; `--help` lists other engines and faults.
"""

from __future__ import annotations

import argparse
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

from rich.console import Console

from pillarbox.ops.drill import output, report
from pillarbox.ops.drill.options import DrillOptions
from pillarbox.ops.drill.result import DrillResult
from pillarbox.ops.drill.run import DrillRun
from pillarbox.ops.drill.sampling import DrillSnapshot
from pillarbox.ops.drill.schedule import KINDS
from pillarbox.ops.drill.target import DrillTarget, SettingsSource, new_name
from tests.faults.drilling import commit
from tests.soak.engines import BROKERS, STORES, Engine
from tests.soak.outages import HookSocket, ServerOutages
from tests.soak.resources import ResourceLog, memory_of

SPARED = 1


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description="A long drill on private servers.")
    parser.add_argument("--store", choices=STORES, default="postgresql")
    parser.add_argument("--broker", choices=BROKERS, default="rabbitmq")
    parser.add_argument("--minutes", type=float, default=30.0, help="minutes of load")
    parser.add_argument("--rate", type=float, default=300.0, help="events per second")
    parser.add_argument(
        "--relays", type=int, default=3, help="relays that can be hit, beside one that never is (not on SQLite)"
    )
    parser.add_argument("--interval", type=float, default=1.0, help="mean seconds between two faults")
    parser.add_argument("--fault", action="append", choices=KINDS, default=[], help="only this fault; repeatable")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 32), help="repeat a schedule")
    parser.add_argument("--report", type=Path, help="a file for the report")
    parser.add_argument("--keep", type=Path, help="an empty folder for ledgers and logs, which are removed otherwise")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    # SIGTERM ends it the way Ctrl-C does, servers included.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    given = parsed(arguments)
    print(f"--seed {given.seed}", flush=True)
    rng = random.Random(given.seed)
    with ExitStack() as running:
        folder = given.keep or Path(running.enter_context(TemporaryDirectory(prefix="pillarbox-soak-")))
        ledgers = folder / "drill"
        ledgers.mkdir(parents=True)
        store, broker = STORES[given.store](running, folder), BROKERS[given.broker](running, folder)
        os.environ |= {"PILLARBOX_STORE": store.url}
        if broker.url:
            os.environ |= {"PILLARBOX_TRANSPORT": broker.url}
        outages = _outages(rng, database=store, broker=broker)
        hooks = running.enter_context(closing(HookSocket(folder, outages)))
        options = DrillOptions(
            seed=given.seed,
            seconds=given.minutes * 60,
            rate=given.rate,
            relays=given.relays,
            # SQLite has one lane: the relay that owns it must be hit.
            spared=0 if given.store == "sqlite" else SPARED,
            interval=given.interval,
            kinds=given.fault,
            cut_database=hooks.command("database", "cut"),
            restore_database=hooks.command("database", "restore"),
            cut_broker=hooks.command("broker", "cut"),
            restore_broker=hooks.command("broker", "restore"),
        )
        processes: dict[str, int] = {}
        log = ResourceLog(
            {"MiB of a relay": lambda: _memory(processes, "relay")}
            | ({"MiB of the audit": lambda: _memory(processes, "audit")} if broker.url else {})
            | {**store.connections, **broker.connections}
        )
        log.start()
        result = asyncio.run(_drill(options, ledgers, processes))
        log.stop()
    fields = result.as_json() | {
        "transport_version": broker.version,
        "commit": commit(),
        "cores": os.cpu_count(),
        "outages": {name: one.used for name, one in outages.items()},
        "resources": log.as_json(),
        "not_flat": log.violations(),
    }
    if given.report:
        given.report.write_text(json.dumps(fields) + "\n", encoding="utf-8")
    Console(highlight=False, width=110).print(report.table(fields))
    print(json.dumps(fields["resources"], indent=1))
    for line in fields["not_flat"]:
        print(f"NOT FLAT: {line}", file=sys.stderr)
    return 0 if result.conclusion == "passed" and not fields["not_flat"] else 1


def _outages(rng: random.Random, **engines: Engine) -> dict[str, ServerOutages]:
    return {name: ServerOutages(one.server, rng, *one.ways) for name, one in engines.items() if one.server and one.ways}


async def _drill(options: DrillOptions, folder: Path, processes: dict[str, int]) -> DrillResult:
    source = SettingsSource()
    target = DrillTarget.of(source.load(), name=new_name())
    title = f"{target.engine} → relays → {target.broker}, seed {options.seed}"
    with output.progress_lines(title, Console(highlight=False)) as show:

        def show_and_find(snapshot: DrillSnapshot) -> None:
            show(snapshot)
            processes.update(snapshot.processes)

        return await DrillRun(source, target, options, folder=folder, show=show_and_find).run()


def _memory(processes: Mapping[str, int], kind: str) -> float | None:
    """Of the first process of a kind: it is never killed."""
    names = sorted((name for name in processes if name.startswith(kind)), key=lambda name: int(name.split("-")[1]))
    return memory_of(processes[names[0]]) if names else None


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
