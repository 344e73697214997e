from datetime import UTC, datetime, timedelta

import pytest

from pillarbox.core.statistics import OUTBOX, BacklogStatistics, OutcomeStatistics, Sample, StatisticsCounter
from pillarbox.ops.console.statistics import step_width, time_series
from pillarbox.ops.destination_reports import rates_by_destination

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def carried(ago: float, *, published: int, lag: float = 0.02, failed: int = 0, to: str = "orders") -> Sample:
    values = OutcomeStatistics(retried=failed)
    for _ in range(published):
        values.count_delivered(lag)
    return Sample(NOON - timedelta(seconds=ago), "relay-1", to, values)


def level(ago: float, recorded: int) -> Sample:
    values = BacklogStatistics(recorded=recorded, backlog=0, oldest=None, dead=0)
    return Sample(NOON - timedelta(seconds=ago), "relay-1", OUTBOX, values)


def test_rates_are_differences_and_sums_by_step() -> None:
    found = time_series([level(15, 100), level(5, 150), carried(5, published=20)], now=NOON, seconds=900)
    assert found.step == 10
    assert found.recorded[-3:] == [None, 5.0, None]
    assert found.published[-3:] == [0.0, 2.0, None]
    assert len(found.times) == len(found.recorded) == len(found.p99)


def test_two_relays_that_see_the_same_number_do_not_double_it() -> None:
    samples = [level(15, 100), level(14, 100), level(5, 150), level(4, 150)]
    assert time_series(samples, now=NOON, seconds=900).recorded[-2] == 5.0


def test_a_gap_in_the_samples_is_a_gap_in_the_chart() -> None:
    found = time_series([level(115, 100), level(5, 150)], now=NOON, seconds=900)
    assert [value for value in found.recorded if value is not None] == []


def test_lags_are_those_of_all_relays_together() -> None:
    samples = [carried(5, published=98, lag=0.004), carried(5, published=2, lag=9)]
    found = time_series(samples, now=NOON, seconds=900)
    assert [found.p50[-2], found.p95[-2], found.p99[-2]] == pytest.approx([0.005 * 50 / 98, 0.005 * 95 / 98, 7.5])


def test_a_lag_is_interpolated_within_its_bucket() -> None:
    even = OutcomeStatistics(published=4, lags=[0, 4, *[0] * 15])
    assert [even.lag_quantile(share) for share in (0.25, 0.5, 1.0)] == pytest.approx([0.00625, 0.0075, 0.01])
    assert OutcomeStatistics().lag_quantile(0.5) is None
    beyond = OutcomeStatistics(published=1, lags=[*[0] * 16, 1])
    assert beyond.lag_quantile(0.5) == float("inf")
    [longest] = {one for one in time_series([carried(5, published=1, lag=9999)], now=NOON, seconds=900).p99 if one}
    assert longest == 3600


def test_recorded_and_published_count_an_event_once_for_each_destination() -> None:
    counter = StatisticsCounter()
    for _ in range(10):
        counter.count_split(("orders", "mail", "search"))
    samples = [level(15, 100), level(5, 110)]
    samples += [Sample(NOON - timedelta(seconds=5), "r", name, values) for name, values in counter.collect().items()]
    samples += [carried(5, published=10, to=name) for name in ("orders", "mail", "search")]
    found = time_series(samples, now=NOON, seconds=900)
    assert (found.recorded[-2], found.published[-2]) == (3.0, 3.0)


def test_values_of_the_next_release_are_ignored() -> None:
    read = Sample.read(NOON, "r", "orders", {"published": 3, "unknown": 1})
    assert read.values == OutcomeStatistics(published=3)


def test_a_day_has_about_a_hundred_steps() -> None:
    assert (step_width(900), step_width(3600), step_width(86_400)) == (10, 40, 960)


def test_a_destination_has_a_pace() -> None:
    found = rates_by_destination(
        [carried(5, published=30, failed=10), carried(15, published=30), level(5, 9)], seconds=60
    )
    assert list(found) == ["orders"]
    assert (found["orders"].published, round(found["orders"].failed, 3), found["orders"].p95) == (1.0, 0.143, 0.02425)
