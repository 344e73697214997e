"""The name of a PostgreSQL server in errors: the address the driver uses, without credentials."""

import pytest

from pillarbox.stores.postgres.connection import place_of


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("postgresql://app:secret@db:6432/shop", "db:6432/shop"),
        ("postgresql://app@db/shop", "db:5432/shop"),
        ("postgresql:///shop", "local socket:5432/shop"),
        ("postgresql:///shop?host=127.0.0.1&port=1&password=secret", "127.0.0.1:1/shop"),
        ("postgresql:///shop?host=/run/pg", "/run/pg:5432/shop"),
    ],
)
def test_the_server_is_named_without_credentials(url: str, place: str) -> None:
    assert place_of(url) == place
