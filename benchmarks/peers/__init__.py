"""Other outboxes for Python, each in an environment of its own, with default settings and tuned.

*Tuned* is the fastest that we found by trying batch sizes, concurrency and uvloop. All of them publish persistent,
mandatory, confirmed messages, and every event must arrive.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

from benchmarks.cells import Plan, Sizes, Skipped, Way
from benchmarks.draining import Draining
from benchmarks.events import PAYLOAD_SQL
from benchmarks.processes import ROOT, WorkerFailed

FOLDER = Path(__file__).parent
ENVIRONMENTS = ROOT / "build" / "peers"
INSTALLED = ".installed"

_PAYLOAD = f"convert_to({PAYLOAD_SQL}, 'UTF8')"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A peer: how its backlog is written, and how its relay runs with its defaults and tuned."""

    name: str
    module: str
    table: str
    fill: str
    defaults_rate: int
    """About how many events a second it carries with its defaults, by which its backlog is sized."""
    tuned_rate: int
    tuned: Mapping[str, Any] = field(default_factory=dict)


PEERS = (
    Peer(
        name="txoutbox",
        module="benchmarks.workers.txoutbox_relay",
        table="outbox",
        fill=f"""INSERT INTO outbox (topic, key, payload)
            SELECT 'order.placed', 'ORDER:' || (g::bigint * 7919 %% %(keys)s), {_PAYLOAD}
            FROM generate_series(1, %(events)s) g""",
        defaults_rate=1_500,
        tuned_rate=5_000,
        tuned={
            "uvloop": True,
            "delete": True,
            "config": {"batch_size": 500, "concurrency": 500, "publish_timeout": None},
        },
    ),
    Peer(
        name="faststream-outbox",
        module="benchmarks.workers.faststream_relay",
        table="outbox",
        fill=f"""INSERT INTO outbox (queue, payload, headers)
            SELECT 'orders', {_PAYLOAD}, '{{"content-type": "application/octet-stream"}}'
            FROM generate_series(1, %(events)s) g""",
        defaults_rate=400,
        tuned_rate=1_500,
        tuned={
            "uvloop": True,
            "pool": {"pool_size": 40},
            "config": {"max_workers": 30, "fetch_batch_size": 500, "terminal_flush_batch_size": 100},
        },
    ),
    Peer(
        name="pgqueuer",
        module="benchmarks.workers.pgqueuer_relay",
        table="pgqueuer",
        fill=f"""INSERT INTO pgqueuer (priority, entrypoint, payload, status, execute_after)
            SELECT 0, 'orders', {_PAYLOAD}, 'queued', now() FROM generate_series(1, %(events)s) g""",
        defaults_rate=1_200,
        tuned_rate=3_000,
        tuned={"uvloop": True, "config": {"batch_size": 1000}},
    ),
)


def names(sizes: Sizes) -> list[str]:
    """What the cells are called."""
    return [f"peers, {queue}" for queue in sizes.peer_queues]


def plans(sizes: Sizes) -> list[Plan]:
    """Pillarbox and its peers, a cell for each queue type. Peers that are not installed yet are installed."""
    ways: dict[str, Way] = {
        "Pillarbox": Draining(events=sizes.events),
        "Pillarbox, history on": Draining(events=sizes.events, options={"history": True}),
    }
    for peer in PEERS:
        if sizes.peer_defaults:
            ways[f"{peer.name}, defaults"] = _way(peer, {}, peer.defaults_rate * sizes.peer_seconds)
        ways[f"{peer.name}, tuned"] = _way(peer, peer.tuned, peer.tuned_rate * sizes.peer_seconds)
    return [
        Plan(name=name, queue=queue, repeats=min(3, sizes.repeats), contenders=ways)
        for name, queue in zip(names(sizes), sizes.peer_queues, strict=True)
    ]


def _way(peer: Peer, options: Mapping[str, Any], events: float) -> Way:
    try:
        python = environment(peer.name)
    except WorkerFailed as failure:
        return Skipped(str(failure))
    return Draining(
        events=int(events),
        module=peer.module,
        python=python,
        options=options,
        prepare=_preparing(peer.module, python),
        fill=peer.fill,
        table=peer.table,
    )


@cache
def environment(name: str) -> str:
    """The Python of a peer's environment, made when it is first needed and kept. Raises WorkerFailed."""
    folder, wanted = ENVIRONMENTS / name, FOLDER / f"{name}.txt"
    python = folder / "bin" / "python"
    mark = folder / INSTALLED
    if not mark.exists() or mark.read_text() != wanted.read_text():
        print(f"installing {name}", file=sys.stderr)
        folder.parent.mkdir(parents=True, exist_ok=True)
        call(name, sys.executable, "-m", "venv", "--clear", str(folder))
        install = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input")
        call(name, str(python), *install, "-r", str(wanted))
        mark.write_text(wanted.read_text())
    return str(python)


@cache
def _preparing(module: str, python: str) -> Callable[[str], None]:
    """What makes a peer's tables; the same for all of its contenders, which share a template database."""
    return partial(_prepare, module, python)


def _prepare(module: str, python: str, url: str) -> None:
    job = {"prepare": True, "store": url}
    call(module, python, "-m", module, json.dumps(job))


def call(name: str, *command: str) -> None:
    """Run a command that sets a peer up. Raises WorkerFailed with its last line."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise WorkerFailed(f"{name} could not be set up: {last[0]}")
