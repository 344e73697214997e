"""The processes of the applications are forks of one that has imported their libraries."""

from collections.abc import Iterator

import pytest

from tests.servers import forkserver


@pytest.fixture(scope="session", autouse=True)
def fork_server() -> Iterator[None]:
    """It starts with the first fork and ends after everything else."""
    yield
    forkserver.SERVER.close()
