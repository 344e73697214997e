"""The wheel as a user gets it: bare, outside the source tree, without any third-party library."""

import subprocess
import sys
import venv
import zipfile
from collections.abc import Sequence
from email.parser import Parser
from pathlib import Path

import pytest


def _run(command: Sequence[str | Path], cwd: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False)


def _must_run(command: Sequence[str | Path], cwd: Path) -> str:
    done = _run(command, cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = pytestconfig.rootpath
    _must_run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, source], folder)
    (built,) = folder.glob("pillarbox-*.whl")
    return built


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of a fresh environment with the wheel in it and nothing else."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    _must_run([*pip, "install", "--no-deps", "--no-index", wheel], folder)
    return folder / "bin"


def test_imports_from_anywhere_without_any_dependency(bare: Path, tmp_path: Path) -> None:
    place = _must_run([bare / "python", "-I", "-c", "import pillarbox; print(pillarbox.__file__)"], tmp_path)
    assert Path(place.strip()).is_relative_to(bare.parent)


def test_holds_every_statement_and_the_type_marker(wheel: Path, pytestconfig: pytest.Config) -> None:
    source = pytestconfig.rootpath / "src"
    statements = {str(path.relative_to(source)) for path in source.rglob("*.sql")}
    assert statements
    with zipfile.ZipFile(wheel) as archive:
        assert statements | {"pillarbox/py.typed"} <= set(archive.namelist())


def test_requires_nothing_that_is_not_an_extra(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = Parser().parsestr(archive.read(name).decode())
    assert metadata["Version"] == "0.1.0"
    assert metadata["License-Expression"] == "MIT"
    assert [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line] == []


def test_the_command_without_its_extra_says_what_to_install(bare: Path, tmp_path: Path) -> None:
    done = _run([bare / "pillarbox", "--help"], tmp_path)
    assert done.returncode != 0
    (line,) = done.stderr.splitlines()
    assert 'pip install "pillarbox[cli]"' in line
