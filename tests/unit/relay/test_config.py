"""Invalid values and combinations are rejected at the start, and the error names them."""

from typing import Any

import pytest

from pillarbox import ConfigurationError, RelayConfig, RetentionConfig


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"batch_size": 0}, "RelayConfig.batch_size is 0: write an integer, 1 or more"),
        ({"batch_size": "500"}, "RelayConfig.batch_size is '500'"),
        ({"max_in_flight_batches": 0}, "RelayConfig.max_in_flight_batches"),
        (
            {"lease": "2s", "heartbeat_interval": "1s"},
            r"RelayConfig.lease is 2s: it must be at least 3 × RelayConfig.heartbeat_interval",
        ),
        ({"lease": "12900ms", "send_timeout": "10s"}, r"at least 13s, which is RelayConfig.send_timeout \(10s\)"),
        ({"stall_limit": "1s", "heartbeat_interval": "1s"}, "RelayConfig.stall_limit is 1s: it must be at least 2 × "),
        ({"poll_interval": "soon"}, "RelayConfig.poll_interval"),
        ({"poll_interval": 0}, "RelayConfig.poll_interval is 0: write a duration above zero"),
        ({"max_in_flight_bytes": 0}, "RelayConfig.max_in_flight_bytes is 0: write a size from 1 byte"),
        ({"outages": "ignore"}, 'RelayConfig.outages is \'ignore\': write "wait" or "count"'),
        ({"wakeup": "sometimes"}, "RelayConfig.wakeup"),
        ({"on_exhausted": "forget"}, "RelayConfig.on_exhausted"),
    ],
)
def test_an_invalid_value_is_named(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        RelayConfig(**wrong)


def test_a_lease_just_long_enough_for_a_send_is_accepted() -> None:
    assert RelayConfig(lease="13s", send_timeout="10s", heartbeat_interval="1s").max_send_seconds == 11


def test_messages_in_flight_are_bounded() -> None:
    assert RelayConfig(batch_size=100, max_in_flight_batches=3).max_in_flight == 300


@pytest.mark.parametrize(("name", "value"), [("history", "-1s"), ("inbox", "a while"), ("audit", None)])
def test_an_invalid_retention_is_named(name: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=f'RetentionConfig.{name} is .*: write a duration, .* or "forever"'):
        RetentionConfig(**{name: value})


@pytest.mark.parametrize(
    ("inbox", "dead", "kept"),
    [("10s", "5s", 10), ("5s", "10s", 10), ("forever", "10s", None), ("10s", "forever", None)],
)
def test_inbox_records_are_kept_at_least_as_long_as_dead_letters(inbox: str, dead: str, kept: float | None) -> None:
    assert RetentionConfig(inbox=inbox, dead=dead).in_seconds.inbox == kept


def test_the_docstring_has_unit_default_and_meaning_of_zero() -> None:
    text = str(RelayConfig.__doc__)
    assert "batch_size: Events per fetch and per settlement. (events, 1 or more; default 500)" in text
    assert "drain_timeout: How long a stopping relay waits for events in flight. `0s`: do not wait." in text
