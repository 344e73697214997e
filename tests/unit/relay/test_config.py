"""Settings that cannot work together are refused at the start, and the error names them."""

from typing import Any

import pytest

from pillarbox import ConfigurationError, RelayConfig


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"batch_size": 0}, "relay.batch_size"),
        ({"in_flight": 0}, "relay.in_flight"),
        ({"lease": "2s", "heartbeat": "1s"}, "relay.heartbeat"),
        ({"lease": "12900ms", "send_timeout": "10s"}, "relay.send_timeout 10s .* at least 13s"),
        ({"stall_limit": "1s", "heartbeat": "1s"}, "relay.stall_limit"),
        ({"poll_interval": "soon"}, "relay.poll_interval"),
        ({"outages": "ignore"}, "relay.outages"),
        ({"on_exhausted": "forget"}, "on_exhausted"),
        ({"history": "-1s"}, "relay.history"),
        ({"receipts": "a while"}, "relay.receipts"),
    ],
)
def test_wrong_figures_are_named(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        RelayConfig(**wrong)


def test_a_lease_just_long_enough_for_a_send_is_accepted() -> None:
    assert RelayConfig(lease="13s", send_timeout="10s", heartbeat="1s").longest_send == 11


def test_what_is_in_hand_is_bounded() -> None:
    assert RelayConfig(batch_size=100, in_flight=3).max_in_flight == 300


@pytest.mark.parametrize(
    ("receipts", "dead", "kept"),
    [("10s", "5s", 10), ("5s", "10s", 10), (None, "10s", None), ("10s", None, None)],
)
def test_receipts_are_kept_at_least_as_long_as_dead_letters(receipts: Any, dead: Any, kept: float | None) -> None:
    assert RelayConfig(receipts=receipts, dead=dead).retention.receipts == kept
