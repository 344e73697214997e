"""Any text that a client sends as a cursor is valid or rejected, and never an internal error."""

import json
from base64 import urlsafe_b64encode
from contextlib import suppress
from datetime import UTC

from hypothesis import example, given
from hypothesis import strategies as st

from apps.ingestion.api import cursors as ingestion
from apps.notifications.api import cursors as notifications
from apps.notifications.api.problems import Problem

TIMES = st.sampled_from(
    ["2026-11-15T12:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59.999999-14:00", "2026-11-15T12:00:00", ""]
)
UUIDS = st.uuids().map(str) | st.text(max_size=40)
BEYOND = urlsafe_b64encode(b"0001-01-01T00:00:00+14:00 0193c2f0-6b1e-7c3a-9f57-3c1d2e4f5a6b").decode()
DEEP = urlsafe_b64encode(b"[" * 5000).decode()


@given(st.text() | st.binary().map(lambda raw: urlsafe_b64encode(raw).decode()))
@example(BEYOND)
@example(DEEP)
def test_any_text_is_a_cursor_or_a_problem(cursor: str) -> None:
    with suppress(ingestion.BadCursor):
        ingestion.read(cursor).created_at.astimezone(UTC)  # every driver does that
    with suppress(Problem):
        notifications.position_of(cursor)


@given(TIMES, UUIDS, st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers()))
def test_a_forged_cursor_is_a_cursor_or_a_problem(time: str, document: str, anything: object) -> None:
    with suppress(ingestion.BadCursor):
        ingestion.read(urlsafe_b64encode(f"{time} {document}".encode()).decode()).created_at.astimezone(UTC)
    for fields in ([time, "CUSTOMER", anything], [time, anything, 1], [anything, "CUSTOMER", 1], anything):
        with suppress(Problem):
            notifications.position_of(urlsafe_b64encode(json.dumps(fields).encode()).decode())
