from datetime import UTC, datetime, timedelta

import pytest

from pillarbox.admin.dead_letters import DeadLetterFilter
from pillarbox.admin.listing import EventFilter
from pillarbox.admin.states import EventState
from pillarbox.core.errors import ConfigurationError
from pillarbox.core.message import Status
from pillarbox.ops.console.filters import dead_letter_filter, event_filter, given, moment, whole


def test_a_url_without_questions_asks_for_everything() -> None:
    assert event_filter({}) == EventFilter()
    assert dead_letter_filter({}) == DeadLetterFilter()


@pytest.mark.parametrize(
    ("status", "wanted"),
    [
        ("PENDING", EventFilter(status=Status.PENDING)),
        ("failed", EventFilter(status=Status.FAILED)),
        ("pending", EventFilter(status=Status.PENDING)),
    ],
)
def test_a_status_is_one_of_the_view(status: str, wanted: EventFilter) -> None:
    assert event_filter({"status": status}) == wanted


@pytest.mark.parametrize("state", EventState)
def test_a_state_is_finer_than_a_status(state: EventState) -> None:
    assert event_filter({"state": state.value}) == event_filter({"state": state.name}) == EventFilter(state=state)


def test_times_are_ages_or_moments() -> None:
    ago = moment("2h")
    assert ago is not None
    assert timedelta(hours=1.9) < datetime.now(UTC) - ago < timedelta(hours=2.1)
    assert moment("2026-11-30T09:00:00+02:00") == datetime(2026, 11, 30, 7, tzinfo=UTC)
    assert moment("2026-11-30 09:00") == datetime(2026, 11, 30, 9, tzinfo=UTC)
    assert moment(None) is None


@pytest.mark.parametrize("text", ["yesterday", "-1h", "99999999999999w", "2026-13-01", "0001-01-01T00:00:00+14:00"])
def test_an_invalid_time_is_reported(text: str) -> None:
    with pytest.raises(ConfigurationError, match="neither an age such as 1h nor a time"):
        moment(text)


@pytest.mark.parametrize("text", ["0", "-1", "501", "x", "1.5", "9" * 30, "²"])
def test_an_invalid_number_is_reported(text: str) -> None:
    with pytest.raises(ConfigurationError, match="is not a number from 1 to 500"):
        whole(text, "limit", default=50, most=500)


def test_links_keep_the_filter_and_nothing_else() -> None:
    assert given({"type": "a", "after": "x", "evil": "y"}, ("type", "key")) == {"type": "a"}
