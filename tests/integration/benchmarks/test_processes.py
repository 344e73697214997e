"""A worker that fails is noticed at once, with its last words; CPU time counts whole families of processes."""

import os
import subprocess
import sys

import pytest

from benchmarks.processes import WorkerFailed, cpu_seconds, workers
from tests.servers.waiting import wait_until

BURN = "import time\nwhile time.process_time() < 0.1: pass\n"


def test_a_worker_that_exits_early_fails_with_its_last_output() -> None:
    last_words = r"(?s)benchmarks\.workers\.relay ended: .*KeyError: 'profile'"
    with pytest.raises(WorkerFailed, match=last_words), workers("benchmarks.workers.relay", [{}]):
        pass


def test_cpu_time_includes_running_and_ended_children() -> None:
    parent = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BURN!r}])\n{BURN}\ninput()\n"
    with subprocess.Popen([sys.executable, "-c", parent], stdin=subprocess.PIPE) as process:
        wait_until(lambda: cpu_seconds(process.pid) > 0.15, bound=60, what="it has used more than one of the two")
        assert cpu_seconds(os.getpid()) >= cpu_seconds(process.pid)
        process.communicate(b"\n")
    assert cpu_seconds(process.pid) == 0
