"""Programs of users that run beside a test: their own folder, a log, and no process left behind."""

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from tests.servers import processes
from tests.servers.processes import Started

_numbers = count(1)


@contextmanager
def running(command: Sequence[str], folder: Path, variables: Mapping[str, str]) -> Iterator[Started]:
    """The program as a process, which is killed with its children at the end; a failure prints its log."""
    log = folder / f"program-{next(_numbers)}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    started = Started(name=str(command[0]), process=process, log=log, ports=())
    processes.registry.processes.append(started)
    try:
        yield started
    except BaseException:
        print(log.read_text(errors="replace")[-4000:])
        raise
    finally:
        started.kill()
        started.wait_gone(bound=60)
        processes.forget(started)
