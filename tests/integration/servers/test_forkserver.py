"""A fork behaves like `python -m`."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers import forkserver
from tests.servers.waiting import wait_until

ONCE = ("-n", "1", "-r", "1")


@pytest.fixture(scope="module", autouse=True)
def fork_server() -> Iterator[None]:
    yield
    forkserver.SERVER.close()


def output_of(statement: str, folder: Path, **environment: str) -> str:
    """The output of a fork that runs this statement."""
    done = forkserver.run("timeit", *ONCE, statement, folder=folder, environment=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[0]


def test_a_fork_has_its_own_folder_environment_and_session(tmp_path: Path) -> None:
    # timeit puts "." in front of the path.
    script = "import os, sys; print(os.getcwd(), sys.path[1], dict(os.environ), os.getsid(0) == os.getpid())"
    assert output_of(script, tmp_path, NAME="value") == f"{tmp_path} {tmp_path} {{'NAME': 'value'}} True"
    # The fourth is the folder that is being listed.
    assert output_of("import os; print(sorted(os.listdir('/proc/self/fd')))", tmp_path) == "['0', '1', '2', '3']"


def test_a_fork_imports_our_modules_itself(tmp_path: Path) -> None:
    script = "import sys; print('sqlalchemy' in sys.modules, 'pillarbox' in sys.modules, 'apps' in sys.modules)"
    assert output_of(script, tmp_path) == "True False False"


def test_the_exit_status_or_signal_of_a_fork_is_known(tmp_path: Path) -> None:
    refused = forkserver.run("timeit", "--no-such-option", folder=tmp_path, environment={})
    assert (refused.returncode, refused.stdout) == (
        2,
        "option --no-such-option not recognized\nuse -h/--help for command line help\n",
    )
    with (tmp_path / "log").open("wb") as log:
        script = "import time; print('here', flush=True); time.sleep(3600)"
        process = forkserver.start("timeit", *ONCE, script, folder=tmp_path, environment={}, log=log)
    wait_until(lambda: (tmp_path / "log").read_text() == "here\n", bound=90, what="it says that it is there")
    assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    assert process.wait(90) == process.poll() == -signal.SIGKILL


def test_exit_statuses_of_two_forks_are_distinguished(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log:
        good, bad = (
            forkserver.start("timeit", *words, folder=tmp_path, environment={}, log=log)
            for words in ((*ONCE, "pass"), ("--no-such-option",))
        )
    assert (bad.wait(90), good.wait(90)) == (2, 0)
