"""Bounds of the state machines on real stores: fewer steps than in memory, and the same in every run."""

from hypothesis import HealthCheck, settings

BOUNDED = settings(
    max_examples=25,
    stateful_step_count=25,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
