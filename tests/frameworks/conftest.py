"""Fixtures: an environment per framework with the wheel of this tree."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.frameworks.environment import ROOT, Environment

MakeEnvironment = Callable[[str], Environment]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree, built once for the run."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)],
        check=True,
        capture_output=True,
    )
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def environment(wheel: Path) -> MakeEnvironment:
    """`environment("django")` is the environment of `requirements/frameworks/django.txt`."""
    made: dict[str, Environment] = {}

    def make(name: str) -> Environment:
        if name not in made:
            made[name] = Environment(name)
            made[name].prepare(wheel)
        return made[name]

    return make
