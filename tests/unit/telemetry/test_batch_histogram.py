"""A histogram that observes batches exposes the same as prometheus_client's with single values."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram, generate_latest

from pillarbox.telemetry.prometheus.client import LAG
from pillarbox.telemetry.prometheus.histogram import BatchHistogram

# Multiples of 1/1024: sums are exact in any order. Bucket bounds are among the values.
VALUES = st.one_of(st.integers(-1024, 5 * 10**7).map(lambda number: number / 1024), st.sampled_from((0.5, 1.0, 60.0)))
BATCHES = st.lists(st.tuples(st.sampled_from(("orders", "mail")), st.lists(VALUES, max_size=40)), max_size=8)


def exposed(registry: CollectorRegistry) -> list[str]:
    """All samples except `_created`."""
    return [line for line in generate_latest(registry).decode().splitlines() if "_created" not in line]


@given(BATCHES)
def test_a_batch_is_exposed_like_its_single_values(batches: list[tuple[str, list[float]]]) -> None:
    by_batch, by_value = CollectorRegistry(), CollectorRegistry()
    batch = BatchHistogram("lag", "Lag.", ["destination"], buckets=LAG, registry=by_batch)
    value = Histogram("lag", "Lag.", ["destination"], buckets=LAG, registry=by_value)
    for destination, values in batches:
        batch.labels(destination).observe_all(values)
        child = value.labels(destination)
        for one in values:
            child.observe(one)
    assert exposed(by_batch) == exposed(by_value)


def test_a_client_release_with_other_internals_still_counts() -> None:
    class Renamed(BatchHistogram):
        """Looks up its buckets under an unknown name."""

        def __getattribute__(self, name: str) -> object:
            if name == "_upper_bounds" and not self.__dict__.get("inside", True):
                raise AttributeError(name)
            return super().__getattribute__(name)

    registry = CollectorRegistry()
    histogram = Renamed("lag", "Lag.", buckets=LAG, registry=registry)
    observed: list[float] = []
    histogram.observe = lambda amount, exemplar=None: observed.append(amount)  # type: ignore[method-assign]
    histogram.__dict__["inside"] = False
    histogram.observe_all([0.25, 4.0])
    assert observed == [0.25, 4.0]
