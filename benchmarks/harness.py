"""One run: every cell, its contenders in turns, the raw limit before and after each round."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import psycopg

from benchmarks import embedded, latency, peers
from benchmarks.cells import Plan, Sizes, Skipped, Way, plans
from benchmarks.draining import Draining, Lost, Servers
from benchmarks.embedded import Embedded
from benchmarks.processes import ROOT, WorkerFailed
from benchmarks.results import Cell, Contender, Run, Sample

SECONDS_OF_RECORD = {True: 60.0, False: 600.0}
"""The longest that recording may take, in a quick run and in a whole one."""

OnProgress = Callable[[str], None]
"""Called with what is measured next, once for each turn."""


class Harness:
    """Measures the selected cells; all of them by default."""

    def __init__(self, sizes: Sizes, *, only: Sequence[str] = (), without_peers: bool = False) -> None:
        """Raises ValueError for an unknown cell."""
        self._sizes = sizes
        own = plans(self._sizes)
        peers_of_run = [] if without_peers else peers.names(self._sizes)
        known = [*(plan.name for plan in own), *peers_of_run, "latency", "record"]
        if unknown := set(only) - set(known):
            raise ValueError(f"no cell is called {', '.join(sorted(unknown))}; there are: {'; '.join(known)}")
        wanted = only or known
        self._plans = [plan for plan in own if plan.name in wanted]
        if any(name in wanted for name in peers_of_run):
            self._plans += [plan for plan in peers.plans(self._sizes) if plan.name in wanted]
        self._latencies = dict(self._sizes.latency) if "latency" in wanted else {}
        self._record = "record" in wanted

    @property
    def turns(self) -> int:
        """How often `on_progress` will be called."""
        return (
            sum(plan.turns for plan in self._plans) + len(self._latencies) * self._sizes.latency_repeats + self._record
        )

    def run(self, servers: Servers, on_progress: OnProgress) -> Run:
        """Measure all of them."""
        began = time.monotonic()
        started = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        run = Run(machine=machine(servers), quick=self._sizes.quick, started=started)
        for plan in self._plans:
            run.cells.append(self._measure(servers, plan, on_progress))
        for repeat in range(self._sizes.latency_repeats):
            for rate, seconds in self._latencies.items():
                on_progress(f"latency, {repeat + 1} of {self._sizes.latency_repeats}: {rate} events/s")
                run.latencies.append(latency.measure(servers, rate, seconds))
        if self._record:
            on_progress("record")
            run.record = record(servers, SECONDS_OF_RECORD[self._sizes.quick])
        run.seconds = time.monotonic() - began
        return run

    def _measure(self, servers: Servers, plan: Plan, on_progress: OnProgress) -> Cell:
        cell = Cell(name=plan.name, queue=plan.queue)
        for name, way in plan.contenders.items():
            skipped = way.reason if isinstance(way, Skipped) else ""
            cell.contenders.append(Contender(name=name, skipped=skipped))
        self._add_raw(servers, cell)
        for repeat in range(plan.repeats):
            for window in plan.windows:
                confirmed = servers.raw(plan.queue, self._sizes.confirms * max(1, window // 10), window=window)
                cell.confirms.setdefault(str(window), []).append(confirmed)
            for contender, way in zip(cell.contenders, plan.contenders.values(), strict=True):
                if not contender.skipped:
                    on_progress(f"{plan.name}, {repeat + 1} of {plan.repeats}: {contender.name}")
                    take_turn(contender, servers, way, plan.queue)
            self._add_raw(servers, cell)
        if plan.counted:
            for contender, way in zip(cell.contenders, plan.contenders.values(), strict=True):
                if not contender.skipped and isinstance(way, Draining):
                    on_progress(f"{plan.name}, calls and statements: {contender.name}")
                    counted = servers.count(fewer(way, self._sizes.counted), plan.queue)
                    contender.calls, contender.statements = counted.calls, counted.statements
        return cell

    def _add_raw(self, servers: Servers, cell: Cell) -> None:
        if cell.queue:
            cell.raw.append(servers.raw(cell.queue, self._sizes.raw))


def take_turn(contender: Contender, servers: Servers, way: Way, queue: str) -> None:
    """Add one sample. A contender that fails takes no more turns, and its samples are discarded."""
    try:
        contender.samples.append(drain(servers, way, queue))
    except (Lost, WorkerFailed) as failure:
        contender.samples.clear()
        contender.skipped = str(failure)


def record(servers: Servers, seconds: float) -> str:
    """What the benchmark of recording prints."""
    servers.postgres.create_database("record")
    command = [sys.executable, "-m", "benchmarks.record", servers.postgres.url("record")]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=True)
    except subprocess.TimeoutExpired:
        return f"not measured: it takes longer than {seconds:g} s"
    except subprocess.CalledProcessError as failure:
        return f"not measured: {failure.stderr[-500:]}"
    finally:
        servers.postgres.drop_database("record")
    return done.stdout.strip()


def drain(servers: Servers, way: Way, queue: str) -> Sample:
    match way:
        case Draining():
            return servers.drain(way, queue)
        case Embedded():
            return embedded.drain(way)
        case Skipped():
            raise WorkerFailed(way.reason)


def fewer(way: Draining, most: int) -> Draining:
    """The same with few enough events to watch every call."""
    return replace(way, events=min(way.events, most))


def machine(servers: Servers) -> dict[str, object]:
    """The machine and the versions, on which the results depend."""
    with psycopg.connect(servers.postgres.url()) as connection:
        postgres = connection.info.server_version // 10_000
    rabbitmq = servers.rabbitmq.evaluate("rabbit_misc:version()").strip('"')
    return {
        "cores": os.process_cpu_count() if hasattr(os, "process_cpu_count") else len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "postgres": postgres,
        "rabbitmq": rabbitmq,
        "system": platform.system(),
    }
