"""Options of the demo: progress and validation."""

from __future__ import annotations

from typing import Any

import pytest

from pillarbox import ConfigurationError
from pillarbox.ops.demo.run import DemoOptions


@pytest.mark.parametrize(
    ("options", "progress"),
    [
        (DemoOptions(), None),
        (DemoOptions(seconds=10), 0.5),
        (DemoOptions(events=50), 1.0),
        (DemoOptions(seconds=10, events=400), 0.5),
        (DemoOptions(seconds=100, events=400), 0.25),
    ],
)
def test_progress_follows_the_limit_that_is_reached_first(options: DemoOptions, progress: float | None) -> None:
    assert options.progress(seconds=5, events=100) == progress


@pytest.mark.parametrize("wrong", [{"seconds": 0}, {"events": -1}, {"rate": 0}])
def test_limits_must_be_greater_than_zero(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=f"--{next(iter(wrong))} is"):
        DemoOptions(**wrong)
