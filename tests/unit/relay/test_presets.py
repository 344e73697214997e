"""The presets have the documented values."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from pillarbox import ConfigurationError, ExponentialBackoff, RelayConfig
from pillarbox.core.clock import seconds
from pillarbox.settings.shared import PRESET_NAMES, PresetName


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
    name: PresetName, poll_interval: int, batch_size: int, max_retries: int, max_backoff: int
) -> None:
    config, retry = RelayConfig.preset(name), ExponentialBackoff.preset(name)
    assert (seconds(config.poll_interval), config.batch_size) == (poll_interval, batch_size)
    rng = random.Random(1)
    waits = [retry.delay_after(attempt, rng) for attempt in range(1, max_retries + 1)]
    assert waits == [min(2.0**n, max_backoff) for n in range(max_retries)]
    assert retry.delay_after(max_retries + 1, rng) is None
    assert seconds(retry.max_delay) == max_backoff


def test_there_are_four_presets() -> None:
    assert PRESET_NAMES == ("development", "staging", "production", "high-volume")


@pytest.mark.parametrize("preset", [RelayConfig.preset, ExponentialBackoff.preset])
def test_an_unknown_preset_is_an_error_that_lists_the_known_ones(preset: Callable[[Any], object]) -> None:
    with pytest.raises(ConfigurationError, match="no preset 'fast'; use development, staging, production, high-volume"):
        preset("fast")
