"""The commands that cut off a server: they are restored, and nothing of them goes on, whatever fails."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from pillarbox.core.errors import CommandError
from pillarbox.ops.drill import hooks
from pillarbox.ops.drill.hooks import OutageHooks
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
