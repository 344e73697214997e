"""A released migration does not change: databases that have applied it would differ from new ones."""

import re

import pytest

from tests.upgrades.baseline import (
    ENGINES,
    ROOT,
    checksum,
    git,
    has_commit,
    is_whole_repository,
    migrations,
    path_of,
    read_baseline,
)

BASELINE = read_baseline()


def test_the_baseline_names_a_commit_and_migrations_of_known_engines() -> None:
    assert re.fullmatch(r"[0-9a-f]{40}", BASELINE.commit)
    # An engine that was added since has no released migrations yet: the next baseline has them.
    assert {name.partition("/")[0] for name in BASELINE.files} <= set(ENGINES)
    assert set(BASELINE.files) <= set(migrations())


@pytest.mark.parametrize("name", BASELINE.files)
def test_a_released_migration_is_unchanged(name: str) -> None:
    content = (ROOT / path_of(name)).read_bytes()
    assert checksum(content) == BASELINE.files[name], f"{path_of(name)} was released: restore it and add a migration"


def test_migrations_after_the_baseline_have_higher_versions() -> None:
    for engine in ENGINES:
        released = [name for name in BASELINE.files if name.startswith(f"{engine}/")]
        added = [name for name in migrations() if name.startswith(f"{engine}/") and name not in released]
        assert all(name > max(released, default="") for name in added), added


@pytest.mark.parametrize("name", BASELINE.files)
def test_the_baseline_has_the_migrations_of_its_commit(name: str) -> None:
    """Without a repository, or in a shallow clone without that commit, the checksums above decide."""
    if not has_commit(BASELINE.commit):
        assert not is_whole_repository(), f"{BASELINE.commit} is not a commit of this repository"
        return
    shown = git("show", f"{BASELINE.commit}:{path_of(name)}")
    assert shown.returncode == 0, shown.stderr.decode()
    assert checksum(shown.stdout) == BASELINE.files[name]
