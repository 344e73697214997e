"""The presets have the documented values."""

from __future__ import annotations

import random

import pytest

from pillarbox.core.clock import seconds
from pillarbox.relay.config import PRESETS


@pytest.mark.parametrize(
    ("name", "poll_interval", "batch_size", "max_retries", "max_backoff"),
    [
        ("development", 5, 50, 3, 60),
        ("staging", 5, 100, 5, 300),
        ("production", 5, 100, 10, 600),
        ("high-volume", 1, 500, 10, 600),
    ],
)
def test_a_preset_sets_attempts_delays_and_batch_sizes(
    name: str, poll_interval: int, batch_size: int, max_retries: int, max_backoff: int
) -> None:
    preset = PRESETS[name]
    assert (seconds(preset.poll_interval), preset.batch_size) == (poll_interval, batch_size)
    chance = random.Random(1)
    waits = [preset.retry.delay(attempt, chance) for attempt in range(1, max_retries + 1)]
    assert waits == [min(2.0**n, max_backoff) for n in range(max_retries)]
    assert preset.retry.delay(max_retries + 1, chance) is None
    assert seconds(preset.retry.max) == max_backoff


def test_there_are_four_presets() -> None:
    assert list(PRESETS) == ["development", "staging", "production", "high-volume"]
