"""How far a demo has come, and when it is over."""

from __future__ import annotations

from typing import Any

import pytest

from pillarbox import ConfigurationError
from pillarbox.ops.demo.run import Plan


@pytest.mark.parametrize(
    ("plan", "done"),
    [
        (Plan(), None),
        (Plan(seconds=10), 0.5),
        (Plan(events=50), 1.0),
        (Plan(seconds=10, events=400), 0.5),
        (Plan(seconds=100, events=400), 0.25),
    ],
)
def test_whichever_end_is_nearer_counts(plan: Plan, done: float | None) -> None:
    assert plan.done(seconds=5, events=100) == done


@pytest.mark.parametrize("wrong", [{"seconds": 0}, {"events": -1}, {"rate": 0}])
def test_a_plan_without_anything_to_do_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=f"--{next(iter(wrong))} is"):
        Plan(**wrong)
