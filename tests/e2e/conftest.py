"""The built wheel, and environments with it in them: bare, and with the command line's extra."""

from __future__ import annotations

import shutil
import sys
import venv
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.e2e.running import must_run


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = pytestconfig.rootpath
    must_run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, source], folder)
    (built,) = folder.glob("pillarbox-*.whl")
    return built


@pytest.fixture(scope="session")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of a fresh environment with the wheel in it and nothing else."""
    return make_environment(wheel, tmp_path_factory.mktemp("bare"))


@pytest.fixture(scope="session")
def with_cli(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of an environment as `pip install "pillarbox[cli]"` makes it.

    What the extra needs is copied from the environment of the tests: the lock has it, and no index need be there.
    """
    binaries = make_environment(wheel, tmp_path_factory.mktemp("with_cli"))
    (site,) = binaries.parent.glob("lib/python*/site-packages")
    for name in sorted(needed_by("pillarbox", extra="cli")):
        for file in distribution(name).files or ():
            if ".." not in file.parts:  # scripts are outside, and none is ours
                (site / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(str(file.locate()), site / file)
    return binaries


def make_environment(wheel: Path, folder: Path) -> Path:
    """Install the wheel, and nothing else, into a new environment; returns its `bin` folder."""
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    must_run([*pip, "install", "--no-deps", "--no-index", wheel], folder)
    return folder / "bin"


def needed_by(name: str, *, extra: str = "") -> set[str]:
    """The names of all distributions that it requires, and those that they require."""
    found = {requirement.name for requirement in _requirements(name, extra)}
    return found.union(*(needed_by(other) for other in found))


def _requirements(name: str, extra: str) -> Iterator[Requirement]:
    for line in distribution(name).requires or ():
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            yield requirement
