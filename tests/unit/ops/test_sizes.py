"""Bytes for people."""

import pytest

from pillarbox.ops.sizes import size


@pytest.mark.parametrize(("count", "told"), [(5, "5 B"), (2048, "2.0 KiB"), (5 * 1024**2, "5.0 MiB")])
def test_sizes(count: int, told: str) -> None:
    assert size(count) == told
