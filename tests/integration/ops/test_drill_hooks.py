"""The commands that cut off a server: they are restored, and nothing of them goes on, whatever fails."""

from __future__ import annotations

import asyncio
import os
from contextlib import aclosing
from pathlib import Path

import pytest

from pillarbox.core.errors import CommandError
from pillarbox.ops.drill import faults, hooks
from pillarbox.ops.drill.database import DrillTables
from pillarbox.ops.drill.fleet import Fleet
from pillarbox.ops.drill.hooks import OutageHooks
from pillarbox.ops.drill.target import DrillJob, DrillTarget, SettingsSource
from pillarbox.ops.wiring import open_store
from tests.servers.ports import free_port
from tests.servers.waiting import wait_until


def outage(cut: str, restore: str) -> None:
    async def run() -> None:
        async with OutageHooks(what="broker", cut=cut, restore=restore).outage():
            pass

    asyncio.run(run())


def test_a_command_that_fails_is_named_and_the_server_restored(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"^--cut-broker ended with 3: no such container$"):
        outage("echo no such container >&2; exit 3", f"touch {tmp_path}/restored")
    assert (tmp_path / "restored").exists()


def test_if_both_commands_fail_the_error_names_both() -> None:
    with pytest.raises(CommandError, match=r"^--cut-broker ended with 3: .*; --restore-broker ended with 4: "):
        outage("exit 3", "exit 4")


def test_a_command_may_leave_a_server_behind_that_keeps_its_output_open(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    outage("true", f"sleep 600 & echo $! > {pid}")
    os.kill(int(pid.read_text()), 9)


def test_a_command_that_hangs_is_killed_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "TIMEOUT", 0.5)
    pid = tmp_path / "pid"
    with pytest.raises(CommandError, match=r"--cut-broker did not end within 0\.5 s"):
        outage(f"sleep 600 & echo $! > {pid}; wait", f"touch {tmp_path}/restored")
    wait_until(lambda: not running(int(pid.read_text())), bound=10, what="its process has ended")
    assert (tmp_path / "restored").exists()


async def test_a_cancelled_command_is_killed_and_the_server_restored(tmp_path: Path) -> None:
    pid = tmp_path / "pid"

    async def cut() -> None:
        async with OutageHooks(
            what="broker", cut=f"sleep 600 & echo $! > {pid}; wait", restore=f"touch {tmp_path}/restored"
        ).outage():
            pass

    task = asyncio.create_task(cut())
    await asyncio.to_thread(
        wait_until, lambda: pid.exists() and pid.read_text() != "", bound=10, what="the command runs"
    )
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    wait_until(lambda: not running(int(pid.read_text())), bound=10, what="its process has ended")
    assert (tmp_path / "restored").exists()


def running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


async def test_a_store_that_does_not_return_ends_the_drill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "STORE_TIMEOUT", 0.0)
    source = SettingsSource(flags={"store.url": f"postgresql://app@127.0.0.1:{free_port()}/shop"})
    target = DrillTarget.of(source.load(), name="drill_test")
    job = DrillJob(source=source, transport="", name="drill_test", folder=tmp_path, role="")
    async with aclosing(open_store(target.settings.store)) as store:
        nemesis = faults.Nemesis(
            fleet=Fleet(job=job),
            store=store,
            tables=DrillTables(target),
            queue=None,
            database_hooks=OutageHooks(what="database", cut="true", restore="true"),
            broker_hooks=OutageHooks(what="broker", cut="", restore=""),
        )
        with pytest.raises(CommandError, match="the store has not answered for 0 s: PostgreSQL at"):
            await nemesis.recovered()
