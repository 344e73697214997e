"""Options of a replay are consistent, and its audit entry contains all of them."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.admin.listing import EventFilter
from pillarbox.admin.replay import (
    BATCH_BYTES,
    MOST_IDS,
    DeliveredRow,
    DeliveryPosition,
    FoundDelivered,
    Progress,
    Replay,
    ReplayBatch,
    chosen_of,
    detail_of_replay,
    replay_of_entry,
)
from pillarbox.admin.states import EventState
from pillarbox.core.errors import ConfigurationError
from pillarbox.core.message import Status

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
SEED = "0193c2f0-6b1e-7c3a-9f57-3c1d2e4f5a6b"


@pytest.mark.parametrize(
    ("asked", "reported"),
    [
        ({"wanted": EventFilter(status=Status.FAILED)}, "delivered"),
        ({"wanted": EventFilter(state=EventState.RETRYING)}, "delivered"),
        ({"wanted": EventFilter(state=EventState.BLOCKED)}, "delivered"),
        ({"wanted": EventFilter(since=NOON), "until": NOON}, "swap"),
        ({"rate": 0}, "rate"),
        ({"rate": float("inf")}, "rate"),
        ({"rate": float("nan")}, "rate"),
        ({"most": 0}, "at least 1"),
        ({"to": ""}, "destination"),
        ({"to": "a\nb"}, "destination"),
        ({"event_ids": tuple(map(str, range(MOST_IDS + 1)))}, "too many"),
    ],
)
def test_contradictory_options_are_rejected(asked: dict[str, Any], reported: str) -> None:
    with pytest.raises(ConfigurationError, match=reported):
        Replay(**asked)


def row(place: int, size: int = 1) -> DeliveredRow:
    return DeliveredRow(NOON + timedelta(seconds=place), place, "x", f"evt-{place}", size)


def found(*rows: DeliveredRow, edge: bool = False, wanted: bool = True) -> list[FoundDelivered]:
    return [FoundDelivered(one, wanted, edge and one is rows[-1]) for one in rows]


def test_a_batch_ends_at_its_limit() -> None:
    first, second, third = row(1), row(2), row(3)
    assert chosen_of(found(first, second, third), limit=2) == ReplayBatch([first, second], second.position)
    assert chosen_of(found(first, second), limit=2) == ReplayBatch([first, second], None)


def test_a_batch_is_bounded_in_bytes_and_has_at_least_one_row() -> None:
    large, small = row(1, BATCH_BYTES + 1), row(2)
    assert chosen_of(found(large, small), limit=9) == ReplayBatch([large], large.position)
    assert chosen_of(found(small, large), limit=9) == ReplayBatch([small], small.position)


def test_an_empty_scan_returns_the_position_to_continue_from() -> None:
    assert chosen_of(found(row(1), edge=True, wanted=False), limit=9) == ReplayBatch([], row(1).position)
    assert chosen_of([], limit=9) == ReplayBatch([], None)


times = st.datetimes(timezones=st.just(UTC))
texts = st.text(min_size=1, max_size=9)


@given(
    st.builds(EventFilter, event_type=st.none() | texts, key=st.none() | texts, destination=st.none() | texts),
    st.none() | times,
    st.lists(texts, max_size=3),
    st.none() | st.just("orders"),
    st.none() | st.floats(min_value=0.001, max_value=1e6),
    st.none() | st.integers(min_value=1),
    st.builds(DeliveryPosition, times, st.integers(), texts),
    st.booleans(),
)
def test_the_audit_entry_round_trips(
    wanted: EventFilter,
    until: datetime | None,
    ids: list[str],
    to: str | None,
    rate: float | None,
    most: int | None,
    after: DeliveryPosition,
    done: bool,
) -> None:
    plan = Replay(wanted=wanted, until=until, event_ids=tuple(ids), to=to, rate=rate, most=most)
    detail = json.loads(json.dumps(detail_of_replay(seed=SEED, plan=plan, after=after, done=done)))
    assert replay_of_entry(7, NOON, 3, detail) == Progress(7, SEED, plan, NOON, 3, after, done)
