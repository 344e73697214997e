"""An inbox rejects invalid settings when it is created."""

from datetime import timedelta
from typing import Any

import pytest

from pillarbox import ConfigurationError, Inbox
from pillarbox.stores.memory import MemoryStore


@pytest.mark.parametrize(
    ("setting", "value", "reason"),
    [
        ("retention", "a while", "is not a duration"),
        ("retention", -1, "zero or more"),
        ("redelivery", None, "is not a duration"),
        ("redelivery", "long", "is not a duration"),
    ],
)
def test_an_invalid_setting_is_named(setting: str, value: Any, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason) as caught:
        Inbox(**{setting: value})
    assert setting in str(caught.value)


@pytest.mark.parametrize(
    ("retention", "redelivery"),
    [("7 days", "30 days"), ("7 days", "7 days"), ("30 days", timedelta(days=31)), (0, 0), ("23h", "1 day")],
)
def test_records_must_outlive_the_longest_redelivery(retention: Any, redelivery: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"retention .* must be longer than redelivery .* raise retention"):
        Inbox(retention=retention, redelivery=redelivery)


def test_a_retention_must_outlive_the_default_redelivery() -> None:
    with pytest.raises(ConfigurationError, match="retention 30 days must be longer than redelivery 90 days"):
        Inbox(retention="30 days")


@pytest.mark.parametrize(("retention", "redelivery"), [("30 days", "7 days"), ("forever", "10000 days")])
def test_a_retention_longer_than_the_redelivery_is_accepted(retention: str, redelivery: str) -> None:
    store = MemoryStore()
    with store.transaction() as transaction:
        assert Inbox(retention=retention, redelivery=redelivery).admit(transaction, "billing", "e1")
