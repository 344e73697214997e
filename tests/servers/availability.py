"""A server this machine cannot start: a counted skip on a laptop, a failure where CI=true."""

import os
from collections.abc import Callable
from typing import TypeVar

import pytest

from tests.servers.debian import MissingServer

Server = TypeVar("Server")


def available(make: Callable[[], Server]) -> Server:
    """What `make` makes; skips or fails the test if a binary for it is missing."""
    try:
        return make()
    except MissingServer as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(str(missing))
        pytest.skip(str(missing))
