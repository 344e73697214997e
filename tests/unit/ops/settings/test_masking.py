"""No output shows the password of a URL."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.ops.settings.masking import masked, masked_value
from tests.unit.ops.settings.loading import load, problems

CANARY = "canary-password"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://app:secret@db:5432/shop", "postgresql://app:***@db:5432/shop"),
        ("postgresql://app@db/shop?sslmode=require", "postgresql://app@db/shop?sslmode=require"),
        ("postgresql://db/shop?password=secret&sslmode=require", "postgresql://db/shop?password=***&sslmode=require"),
        ("amqp://app:secret@mq:5672/%2F", "amqp://app:***@mq:5672/%2F"),
        ("amqp://mq/", "amqp://mq/"),
        ("amqp://app:secret@a:5672,b:5672/%2F", "amqp://app:***@a:5672,b:5672/%2F"),
        ("postgresql://app:secret@a:5432,b:5433/shop", "postgresql://app:***@a:5432,b:5433/shop"),
        ("postgresql://a:5432,[::1]:5433/shop", "postgresql://a:5432,[::1]:5433/shop"),
        ("amqp://app:secret@a:5672,other:secret@b:5672/", "amqp://***"),
        ("amqp://app:secret@a:5672,b:port/", "amqp://***"),
        ("nats://app:secret@a:4222,b:4222", "nats://app:***@a:4222,b:4222"),
        ("nats://secret@a:4222", "nats://***@a:4222"),
        ("tls://secret@a:4222", "tls://***@a:4222"),
        ("nats://a:4222", "nats://a:4222"),
        ("pulsar://app:secret@a:6650,b:6650", "***"),
        ("amqp://app:sec/ret@mq/", "amqp://***"),
        ("amqp://app:1/ret@mq/", "amqp://***"),
        ("postgresql://app:1?ret@db/shop", "postgresql://***"),
        ("sqlite:///shop.db", "sqlite:///shop.db"),
        ("memory://", "memory://"),
        ("oracle://app:secret@db/shop", "***"),
        ("secret", "***"),
    ],
)
def test_masked_urls(url: str, shown: str) -> None:
    assert masked(url) == shown


@given(password=st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=10))
@pytest.mark.parametrize("url", ["postgresql://app:{}@db:5432/shop", "amqp://app:{}@mq:5672/%2F"])
def test_no_password_is_ever_shown(url: str, password: str) -> None:
    assert CANARY not in masked(url.format(CANARY + password))
    assert CANARY not in masked(url.format(password + CANARY))


@pytest.mark.parametrize("scheme", ["postgresql", "amqp"])
@pytest.mark.parametrize("bad", ["/", "?", "#", "@", "1/", "["])
def test_a_url_split_by_its_password_is_rejected_and_not_quoted(scheme: str, bad: str) -> None:
    variable = "PILLARBOX_STORE" if scheme == "postgresql" else "PILLARBOX_TRANSPORT"
    [problem] = problems(**{variable: f"{scheme}://app:{bad}{CANARY}@127.0.0.1/x"})
    assert problem.startswith(f"{variable}: user, password, host and port cannot be told apart")
    assert CANARY not in problem


def test_a_misplaced_url_is_not_quoted() -> None:
    [problem] = problems(PILLARBOX_RELAY__LEASE=f"amqp://app:{CANARY}@mq/")
    assert CANARY not in problem


def test_neither_settings_nor_their_entries_show_a_password() -> None:
    settings = load(
        PILLARBOX_STORE=f"postgresql://app:{CANARY}@db/shop", PILLARBOX_TRANSPORT=f"amqp://app:{CANARY}@mq/"
    )
    assert CANARY in settings.store.url
    assert CANARY not in repr(settings) + repr(settings.entries)


def test_every_value_of_a_secret_table_is_masked() -> None:
    assert masked_value({"ssl.key.password": CANARY, "linger.ms": 5}) == {"ssl.key.password": "***", "linger.ms": "***"}
