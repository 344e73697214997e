"""Events without an id get a UUIDv7: unique, valid, and sorted by creation time."""

import time
from uuid import RFC_4122, UUID

from pillarbox import Event
from pillarbox.core.event import uuid7


def test_an_id_is_a_valid_uuid_of_version_7() -> None:
    for made in (Event("order.placed", {}).event_id for _ in range(1000)):
        parsed = UUID(made)
        assert (str(parsed), parsed.version, parsed.variant) == (made, 7, RFC_4122)


def test_an_id_contains_its_creation_time() -> None:
    before = time.time_ns() // 1_000_000
    milliseconds = UUID(uuid7()).int >> 80
    assert before <= milliseconds <= time.time_ns() // 1_000_000


def test_no_two_events_share_an_id() -> None:
    assert len({Event("order.placed", {}).event_id for _ in range(10_000)}) == 10_000


def test_the_time_part_never_decreases() -> None:
    times = [uuid7()[:18] for _ in range(1000)]
    assert times == sorted(times)
