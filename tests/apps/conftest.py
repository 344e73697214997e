"""Processes of the applications are forks of one process that has imported their libraries."""

from collections.abc import Iterator

import pytest

from tests.servers import forkserver


@pytest.fixture(scope="session", autouse=True)
def fork_server() -> Iterator[None]:
    """Stop the fork server at the end of the session; it starts with the first fork."""
    yield
    forkserver.SERVER.close()
