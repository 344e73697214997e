"""Runs a drill in this process, optionally with relays that lack a guard, or with writers and consumers
behind a pooler."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from pillarbox.ops.drill.fleet import READER, RELAY, WRITER, Modules
from pillarbox.ops.drill.options import DrillOptions
from pillarbox.ops.drill.result import DrillResult
from pillarbox.ops.drill.run import DrillRun
from pillarbox.ops.drill.sampling import DrillSnapshot
from pillarbox.ops.drill.schedule import FaultKind
from pillarbox.ops.drill.target import DrillTarget, SettingsSource, new_name
from tests.faults.mutants import Guard

ROOT = Path(__file__).resolve().parents[2]
SEED = 16
ENOUGH = 100
"""Events that arrive before a drill is stopped: the first fault may come before the first event."""


def drilled(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *kinds: FaultKind,
    store: str,
    transport: str = "",
    seconds: float,
    without: Guard | None = None,
    name: str = "",
    relay: str = "",
    pooler: str = "",
    faults: int | None = None,
    cut_database: str = "",
    restore_database: str = "",
    cut_broker: str = "",
    restore_broker: str = "",
) -> DrillResult:
    """Run a drill until that many faults were executed and one of each kind took effect, or three times as many.

    name: of its queue; empty: a new one. relay: the module of its relays; empty: the usual one. pooler: URL of the
    store for writers and consumers. The report is in report.json, in the folder of the test; that of a drill that
    passed also in the folder DRILL_REPORTS, if it is set.
    """
    monkeypatch.setenv("PILLARBOX_STORE", store)
    monkeypatch.setenv("PILLARBOX_TRANSPORT", transport)
    monkeypatch.setenv("DRILL_WITHOUT", without or "")
    monkeypatch.setenv("DRILL_POOLER", pooler)
    source = SettingsSource()
    target = DrillTarget.of(source.load(), name=name or new_name())
    options = DrillOptions(
        seed=SEED,
        seconds=seconds,
        interval=0.2,
        kinds=kinds,
        modules=Modules(
            relay=relay or (RELAY if without is None else "tests.faults.drill_relay"),
            writer="tests.drills.pooled_writer" if pooler else WRITER,
            reader="tests.drills.pooled_reader" if pooler else READER,
        ),
        cut_database=cut_database,
        restore_database=restore_database,
        cut_broker=cut_broker,
        restore_broker=restore_broker,
    )

    async def run() -> DrillResult:
        def show(snapshot: DrillSnapshot) -> None:
            if faults is not None:
                executed = snapshot.executed.total()
                done = executed >= faults and set(kinds) <= snapshot.effective.keys()
                if snapshot.received >= ENOUGH and (done or executed >= 3 * faults):
                    drill.stop()

        drill = DrillRun(source, target, options, folder=folder, show=show)
        return await drill.run()

    result = asyncio.run(run())
    report = json.dumps(result.as_json() | {"commit": commit(), "cores": os.cpu_count()}) + "\n"
    (folder / "report.json").write_text(report)
    if (reports := os.environ.get("DRILL_REPORTS")) and result.conclusion == "passed":
        Path(reports, f"{_name_of_test()}.json").write_text(report)
    return result


def _name_of_test() -> str:
    """drills-pooler-test_a_killed… without what no file name may contain."""
    node, _, _ = os.environ["PYTEST_CURRENT_TEST"].rpartition(" (")
    file, _, test = node.rpartition("::")
    return re.sub(r"[^\w]+", "-", f"drill {Path(file).stem.removeprefix('test_')} {test.removeprefix('test_')}").strip(
        "-"
    )


def commit() -> str:
    """The commit of this tree; "" for one without history."""
    shown = subprocess.run(
        ["git", "rev-parse", "--short=8", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return shown.stdout.strip()
