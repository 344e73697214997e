"""An edited dead letter is validated like a new event, and its bytes are kept as given."""

from datetime import UTC, datetime
from typing import Any

import pytest

from pillarbox.admin.listing import EventDetail
from pillarbox.admin.states import EventState
from pillarbox.core.errors import RecordError
from pillarbox.ops.dead_letter_edit import amendment, compact, indent

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
LIMIT = 100


def dead_letter(payload: bytes = b'{"id":1}', headers: str = '{"tenant":"acme"}', **more: Any) -> EventDetail:
    detail = EventDetail(
        1, "evt-001", "orders", EventState.DEAD_LETTERED, "order.placed", None, None, None, payload, "application/json",
        headers, 1, None, None, None, NOON, NOON, None, None, 3, 3, "no", NOON, None, None, None, 7, NOON, NOON,
    )  # fmt: skip
    return detail._replace(**more)


def test_bytes_are_kept_as_given() -> None:
    change = amendment(dead_letter(), payload=b'{ "price": 1.10 }', max_payload=LIMIT)
    assert (change.payload, change.old_payload, change.changes) == (b'{ "price": 1.10 }', b'{"id":1}', True)
    assert change.headers == {"tenant": "acme"}


def test_headers_are_set_and_removed() -> None:
    had = dead_letter(headers='{"tenant":"acme","debug":"1"}')
    change = amendment(had, headers={"tenant": "umbrella", "n": "2"}, removed=["debug"], max_payload=LIMIT)
    assert change.headers == {"tenant": "umbrella", "n": "2"}
    assert change.summary["headers"] == {"set": ["n", "tenant"], "removed": ["debug"]}
    assert change.payload == b'{"id":1}'


def test_an_identical_edit_changes_nothing() -> None:
    assert not amendment(dead_letter(), payload=b'{"id":1}', headers={"tenant": "acme"}, max_payload=LIMIT).changes


@pytest.mark.parametrize(
    ("payload", "reported"),
    [
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b"", "not JSON"),
        (b'{"n": NaN}', "not JSON"),
        (b"42", "at the top"),
        (b'{"text": "\\ud800"}', "surrogate"),
        (b"[" * 200 + b"]" * 200, "nested"),
        (b"[" + b" " * LIMIT + b"]", "max_payload"),
    ],
)
def test_a_payload_that_could_not_be_recorded_is_rejected(payload: bytes, reported: str) -> None:
    with pytest.raises(RecordError, match=reported) as refused:
        amendment(dead_letter(), payload=payload, max_payload=LIMIT)
    assert refused.value.field == "payload"


def test_a_binary_payload_can_be_any_bytes_up_to_the_limit() -> None:
    had = dead_letter(content_type="application/octet-stream")
    assert amendment(had, payload=b"\xff{", max_payload=LIMIT).payload == b"\xff{"
    with pytest.raises(RecordError, match="max_payload"):
        amendment(had, payload=b"x" * (LIMIT + 1), max_payload=LIMIT)


@pytest.mark.parametrize(
    ("asked", "reported"),
    [
        ({"headers": {"a": "x\ny"}}, "control character"),
        ({"headers": {"a": "x" * 9000}}, "longer than"),
        ({"headers": {f"{n}": "" for n in range(80)}}, "at most"),
        ({"removed": ["other"]}, "no header 'other'"),
    ],
)
def test_headers_that_could_not_be_recorded_are_rejected(asked: dict[str, Any], reported: str) -> None:
    with pytest.raises(RecordError, match=reported) as refused:
        amendment(dead_letter(), **asked, max_payload=LIMIT)
    assert refused.value.field == "headers"


def test_headers_inserted_by_sql_do_not_prevent_an_edit_of_the_payload() -> None:
    had = dead_letter(headers='{"n": 1}')
    assert amendment(had, payload=b"{}", max_payload=LIMIT).headers == {"n": 1}


@pytest.mark.parametrize("payload", [b'{"id":1,"items":[1,2.5,"\xc3\xa4"]}', b"{}"])
def test_json_is_indented_for_editing_and_stored_unchanged(payload: bytes) -> None:
    shown, indented = indent(payload)
    assert indented
    assert compact(shown) == payload


@pytest.mark.parametrize("payload", [b'{"price": 1.10}', b'{"a":1,"a":2}', b"no json", b"\xff", b'{"n":1e400}'])
def test_json_that_indenting_would_change_is_shown_unchanged(payload: bytes) -> None:
    assert indent(payload) == (payload, False)
