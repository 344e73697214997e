"""Event ids: unique UUIDs of version 7 in order of creation."""

from __future__ import annotations

import time
from uuid import RFC_4122, UUID

from pillarbox.core.event import uuid7


def test_an_id_is_a_uuid_of_version_7() -> None:
    parsed = UUID(uuid7())
    assert parsed.version == 7
    assert parsed.variant == RFC_4122


def test_an_id_has_the_text_form_of_a_uuid() -> None:
    written = uuid7()
    assert written == str(UUID(written))


def test_ids_are_unique() -> None:
    assert len({uuid7() for _ in range(10_000)}) == 10_000


def test_an_id_starts_with_the_time_in_milliseconds() -> None:
    before = time.time_ns() // 1_000_000
    made = UUID(uuid7()).int >> 80
    after = time.time_ns() // 1_000_000
    assert before <= made <= after


def test_ids_sort_by_time() -> None:
    first = uuid7()
    moment = time.time_ns()
    while time.time_ns() < moment + 1_000:
        pass
    assert first < uuid7()
