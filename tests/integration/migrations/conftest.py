"""BASELINE's release, and tables of it with data."""

from pathlib import Path

import pytest

from tests.tiers import NOT_SUPPORTED
from tests.upgrades.baseline import has_commit, is_whole_repository, read_baseline
from tests.upgrades.release import BaselineRelease


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
