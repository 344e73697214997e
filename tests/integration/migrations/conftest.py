"""BASELINE's release, and tables of it with data."""

from pathlib import Path

import pytest

from tests.integration.migrations.release import Release
from tests.tiers import NOT_SUPPORTED
from tests.upgrades.baseline import has_commit, is_whole_repository, read_baseline
from tests.upgrades.release import BaselineRelease

ENGINES = ("postgres", "mariadb", "sqlite")


@pytest.fixture(scope="session")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> BaselineRelease:
    """The release from which upgrades start."""
    if not has_commit(read_baseline().commit):
        assert not is_whole_repository()
        pytest.skip(f"{NOT_SUPPORTED}this tree lacks the commit of BASELINE: it is not a whole repository")
    release = BaselineRelease(tmp_path_factory.mktemp("baseline"))
    release.install()
    return release


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder for a project."""
    made = tmp_path / "shop"
    made.mkdir()
    return made


@pytest.fixture(params=ENGINES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each engine."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'shop.db'}"
    empty: str = request.getfixturevalue(f"empty_{request.param}_url")
    return empty


@pytest.fixture
def old(url: str, folder: Path, baseline: BaselineRelease) -> Release:
    return Release(url, folder, baseline)


@pytest.fixture
def new(url: str, folder: Path) -> Release:
    return Release(url, folder)
