"""Numbers that must stay flat during a soak."""

from __future__ import annotations

from tests.soak.resources import ResourceLog, growth


def test_noise_and_a_start_are_flat() -> None:
    assert growth([10, 40, 60, 61, 60, 62, 61, 60, 63, 61, 60, 62], more=0) == ""


def test_a_steady_growth_is_not_flat() -> None:
    assert growth([float(40 + 10 * number) for number in range(16)], more=8) == "grew from 95.0 to 175.0"


def test_few_samples_show_nothing() -> None:
    assert growth([1.0] * 7, more=0) == "too few samples"


def test_memory_and_connections_have_bounds_of_their_own() -> None:
    log = ResourceLog({"MiB of a relay": lambda: None, "sessions": lambda: None})
    log.samples = {"MiB of a relay": [40.0] * 8 + [47.0] * 8, "sessions": [10.0] * 8 + [19.0] * 8}
    assert log.violations() == ["sessions: grew from 10.0 to 19.0"]
