"""The output of the demo on a terminal and in a pipe, its signals, and its child processes."""

from __future__ import annotations

import os
import pty
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.integration.demo.running import BOUND, QUICK, demo, environment
from tests.servers.waiting import wait_until


@contextmanager
def endless(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Start a demo without a planned end and wait until its relay has delivered an event."""
    process = subprocess.Popen(
        [sys.executable, "-m", "pillarbox", "demo", "--keep", "kept", *arguments],
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    ledger = folder / "kept" / "ledger.txt"
    try:
        wait_until(
            lambda: ledger.exists() and ledger.stat().st_size > 0, bound=BOUND, what="the ledger has a first line"
        )
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_pipe_gets_plain_lines_and_the_result(tmp_path: Path) -> None:
    done = demo(tmp_path, *QUICK)
    assert done.returncode == 0
    first, *_, last = done.stdout.splitlines()
    assert first == "SQLite → relay → three handlers"
    assert last.startswith("✔ No event lost, no phantom event, every order in sequence")
    assert "writing: " in done.stdout
    assert "\x1b" not in done.stdout


def test_a_detected_fault_is_printed(tmp_path: Path) -> None:
    done = demo(tmp_path, *QUICK, "--inject", "loss")
    assert "✘ " in done.stdout
    assert "never reached mailer" in done.stdout
    assert "✔" not in done.stdout


def test_a_terminal_gets_the_live_view(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    seen = bytearray()

    def read() -> None:
        while chunk := _read(ours):
            seen.extend(chunk)

    reading = threading.Thread(target=read)
    with subprocess.Popen(
        [sys.executable, "-m", "pillarbox", "demo", *QUICK],
        cwd=tmp_path,
        env=environment(tmp_path, TERM="xterm-256color", COLUMNS="110", LINES="40"),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        reading.start()
        assert process.wait(BOUND) == 0
    reading.join()
    os.close(ours)
    text = seen.decode()
    for said in ("order service", "fails at times", "owned by a running relay", "dead letters", "No event lost"):
        assert said in text
    assert "\x1b[" in text


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux raises EIO when the other end is closed
        return b""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_writing_and_the_result_follows(tmp_path: Path, number: signal.Signals) -> None:
    with endless(tmp_path) as process:
        process.send_signal(number)
        said, _ = process.communicate(timeout=BOUND)
        assert process.returncode == 0
    assert "✔ No event lost" in said


def test_a_second_signal_ends_the_demo_without_a_result(tmp_path: Path) -> None:
    def signalled_again() -> bool:
        process.send_signal(signal.SIGINT)
        return process.poll() is not None

    with endless(tmp_path, "--rate", "2000") as process:
        wait_until(signalled_again, bound=BOUND, what="the demo ends although events are pending")
        said, _ = process.communicate()
    assert process.returncode not in (0, -signal.SIGKILL)
    assert "✔" not in said


def test_an_event_deleted_from_the_outbox_is_reported_as_lost(tmp_path: Path) -> None:
    with endless(tmp_path) as process, closing(sqlite3.connect(tmp_path / "kept/shop.db", timeout=2)) as shop:
        [relay] = map(int, _children(process))

        def frozen() -> bool:
            """Stop the relay outside a transaction: inside one it would block every other writer."""
            os.kill(relay, signal.SIGSTOP)
            wait_until(lambda: _is_stopped(relay), bound=BOUND, what="the relay has stopped")
            try:
                shop.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                os.kill(relay, signal.SIGCONT)
                return False
            shop.rollback()
            return True

        wait_until(frozen, bound=BOUND, what="the relay is stopped between two transactions")
        # From here on only the order service competes for the lock.
        shop.execute(f"PRAGMA busy_timeout = {int(1000 * BOUND)}")
        [last] = shop.execute("SELECT max(position) FROM orders").fetchone()
        unseen = "event_id IN (SELECT event_id FROM orders WHERE position > ?)"

        def delete_unseen() -> int:
            with shop:
                return shop.execute(f"DELETE FROM outbox_message WHERE {unseen}", (last,)).rowcount

        wait_until(lambda: delete_unseen() > 0, bound=BOUND, what="events that no relay has fetched were deleted")
        os.kill(relay, signal.SIGCONT)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=BOUND)
        assert process.returncode == 1
    for receiver in ("mailer", "warehouse", "search"):
        assert f"never reached {receiver}, for example" in said


def test_a_demo_that_is_killed_leaves_no_process_behind(tmp_path: Path) -> None:
    with endless(tmp_path) as process:
        children = _children(process)
        assert children
        process.kill()
        process.wait()
        wait_until(lambda: not any(map(_runs, children)), bound=BOUND, what="the relay has ended")


def _is_stopped(pid: int) -> bool:
    """Return whether every thread has stopped; the signal takes effect after a moment."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return all((thread / "stat").read_text().rpartition(")")[2].split()[0] == "T" for thread in threads)


def _children(process: subprocess.Popen[str]) -> list[str]:
    return Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()


def _runs(pid: str) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
