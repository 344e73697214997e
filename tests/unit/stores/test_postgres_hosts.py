"""The servers of a PostgreSQL URL: their names in errors, and which of several is used."""

import pytest

from pillarbox import ConfigurationError
from pillarbox.stores.postgres.hosts import address_of
from pillarbox.stores.postgres.tls import hosts_beyond

CANARY = "canary-password"


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("postgresql://app:secret@db:6432/shop", "db:6432/shop"),
        ("postgresql://app@db/shop", "db:5432/shop"),
        ("postgresql:///shop", "local socket:5432/shop"),
        ("postgresql:///shop?host=127.0.0.1&port=1&password=secret", "127.0.0.1:1/shop"),
        ("postgresql:///shop?host=/run/pg", "/run/pg:5432/shop"),
        ("postgresql://app:secret@db1,db2:6432/shop", "db1:5432,db2:6432/shop"),
        ("postgresql://app:secret@[::1]:5433,[fd00::2]/shop", "::1:5433,fd00::2:5432/shop"),
        ("postgresql:///shop?host=db1,db2&port=1,2", "db1:1,db2:2/shop"),
        ("postgresql:///shop?host=db1,/run/pg&port=6432", "db1:6432,/run/pg:6432/shop"),
        ("postgres://db1,db2?sslmode=disable", "db1:5432,db2:5432"),
    ],
)
def test_the_servers_are_named_without_credentials(url: str, place: str) -> None:
    assert address_of(url).where == place


@pytest.mark.parametrize(
    ("url", "session"),
    [
        ("postgresql://db/shop", None),
        ("postgresql:///shop", None),
        ("postgresql://db1,db2/shop", "read-write"),
        ("postgresql:///shop?host=db1,db2", "read-write"),
        ("postgresql://db1,db2/shop?target_session_attrs=any", None),
    ],
)
def test_of_several_servers_the_store_wants_the_one_that_accepts_writes(url: str, session: str | None) -> None:
    assert address_of(url).session == session


def test_every_host_is_considered_for_encryption() -> None:
    assert hosts_beyond("postgresql://localhost:1,db2:5432/shop") == ["db2"]


@pytest.mark.parametrize(
    ("rest", "why"),
    [
        ("db1,,db2/shop", "empty"),
        ("db1:5432,/shop", "empty"),
        ("db1:0/shop", "cannot be read"),
        ("db1:port,db2/shop", "cannot be read"),
        ("db1:1:2/shop", "cannot be read"),
        ("db1:65536/shop", "cannot be read"),
        ("db1/shop?host=db2", "keep one"),
        ("db1,db2/shop?port=1,2,3", "3 ports"),
        ("12/34@db/shop", "%2F"),
    ],
)
def test_a_url_that_cannot_be_read_is_refused_without_being_quoted(rest: str, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why) as refused:
        address_of(f"postgresql://app:{CANARY}@{rest}" if "@" not in rest else f"postgresql://app:{CANARY}{rest}")
    assert CANARY not in str(refused.value)
