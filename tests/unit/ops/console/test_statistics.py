from datetime import UTC, datetime, timedelta

from pillarbox.core.statistics import OUTBOX, BacklogStatistics, OutcomeStatistics, Sample
from pillarbox.ops.console.statistics import rates_by_destination, step_width, time_series

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
    assert (found.p50[-2], found.p95[-2], found.p99[-2]) == (0.005, 0.005, 10.0)


def test_a_day_has_about_a_hundred_steps() -> None:
    assert (step_width(900), step_width(3600), step_width(86_400)) == (10, 40, 960)


def test_a_destination_has_a_pace() -> None:
    found = rates_by_destination(
        [carried(5, published=30, failed=10), carried(15, published=30), level(5, 9)], seconds=60
    )
    assert list(found) == ["orders"]
    assert (found["orders"].published, round(found["orders"].failed, 3), found["orders"].p95) == (1.0, 0.143, 0.025)
