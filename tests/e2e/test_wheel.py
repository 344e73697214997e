"""The wheel as a user gets it: bare, outside the source tree, without any third-party library."""

import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from tests.e2e.running import must_run, run


def test_imports_from_anywhere_without_any_dependency(bare: Path, tmp_path: Path) -> None:
    place = must_run([bare / "python", "-I", "-c", "import pillarbox; print(pillarbox.__file__)"], tmp_path)
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
    done = run([bare / "pillarbox", "--help"], tmp_path)
    assert done.returncode != 0
    (line,) = done.stderr.splitlines()
    assert 'pip install "pillarbox[cli]"' in line
