"""Fixtures: an environment per framework with the wheel of this tree."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.frameworks.environment import NEWEST, ROOT, Environment
from tests.tiers import NOT_SUPPORTED
from tests.versions import newer_pythons

MakeEnvironment = Callable[[str], Environment]


def newest_python() -> str:
    """The newest interpreter that is installed; skips the test if all are too old."""
    if not (pythons := newer_pythons()):
        pytest.skip(f"{NOT_SUPPORTED}no Python is installed that the newest Django supports")
    return pythons[-1]


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
    """`environment("django")` is the environment of `requirements/frameworks/django.txt`.

    Those whose names end in `_newest` have the newest Python.
    """
    made: dict[str, Environment] = {}

    def make(name: str) -> Environment:
        if name not in made:
            made[name] = Environment(name, python=newest_python() if name.endswith(NEWEST) else sys.executable)
            made[name].prepare(wheel)
        return made[name]

    return make
