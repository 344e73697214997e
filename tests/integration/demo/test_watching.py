"""The demo as a person meets it: a live view on a terminal, lines in a pipe, Ctrl-C, and no orphans."""

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
    """A demo without a planned end, once its relay has delivered something."""
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


def test_a_pipe_gets_plain_lines_and_the_verdict(tmp_path: Path) -> None:
    done = demo(tmp_path, *QUICK)
    assert done.returncode == 0
    first, *_, last = done.stdout.splitlines()
    assert first == "SQLite → relay → three handlers"
    assert last.startswith("✔ Nothing lost, nothing invented, every order in order")
    assert "writing: " in done.stdout
    assert "\x1b" not in done.stdout


def test_a_failed_verdict_says_what_is_wrong(tmp_path: Path) -> None:
    done = demo(tmp_path, *QUICK, "--sabotage", "loss")
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
    for said in ("order service", "fails at times", "owned by a running relay", "dead letters", "Nothing lost"):
        assert said in text
    assert "\x1b[" in text


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # how Linux says that the other end is closed
        return b""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_writing_and_the_verdict_follows(tmp_path: Path, number: signal.Signals) -> None:
    with endless(tmp_path) as process:
        process.send_signal(number)
        said, _ = process.communicate(timeout=BOUND)
        assert process.returncode == 0
    assert "✔ Nothing lost" in said


def test_a_second_signal_ends_it_without_a_verdict(tmp_path: Path) -> None:
    def ended_by_another() -> bool:
        process.send_signal(signal.SIGINT)
        return process.poll() is not None

    with endless(tmp_path, "--rate", "2000") as process:
        wait_until(ended_by_another, bound=BOUND, what="it ends although events wait")
        said, _ = process.communicate()
    assert process.returncode not in (0, -signal.SIGKILL)
    assert "✔" not in said


def test_an_event_that_vanishes_from_the_outbox_is_missed(tmp_path: Path) -> None:
    with endless(tmp_path) as process, closing(sqlite3.connect(tmp_path / "kept/shop.db", timeout=2)) as shop:
        [relay] = map(int, _children(process))

        def frozen() -> bool:
            """In the middle of a transaction of its own it would keep everybody else from writing, too."""
            os.kill(relay, signal.SIGSTOP)
            wait_until(lambda: _is_stopped(relay), bound=BOUND, what="the relay stands still")
            try:
                shop.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                os.kill(relay, signal.SIGCONT)
                return False
            shop.rollback()
            return True

        wait_until(frozen, bound=BOUND, what="the relay is frozen between two transactions")
        # From here on only the demo's writers compete for the database: wait for them as long as for anything else.
        shop.execute(f"PRAGMA busy_timeout = {int(1000 * BOUND)}")
        [last] = shop.execute("SELECT max(position) FROM orders").fetchone()
        unseen = "event_id IN (SELECT event_id FROM orders WHERE position > ?)"

        def thrown_away() -> int:
            with shop:
                return shop.execute(f"DELETE FROM outbox_message WHERE {unseen}", (last,)).rowcount

        wait_until(lambda: thrown_away() > 0, bound=BOUND, what="events are there that no relay has seen")
        os.kill(relay, signal.SIGCONT)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=BOUND)
        assert process.returncode == 1
    for receiver in ("mailer", "warehouse", "search"):
        assert f"never reached {receiver}, such as" in said


def test_a_demo_that_is_killed_leaves_no_process_behind(tmp_path: Path) -> None:
    with endless(tmp_path) as process:
        children = _children(process)
        assert children
        process.kill()
        process.wait()
        wait_until(lambda: not any(map(_runs, children)), bound=BOUND, what="the relay is gone, too")


def _is_stopped(pid: int) -> bool:
    """Whether every thread has stopped: the signal is on its way for a moment."""
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
