"""A dead letter as a form: what is sent back as it came changes nothing, and what was typed means what it says."""

import json

import pytest

from pillarbox.admin.listing import EventDetail
from pillarbox.core.errors import RecordError
from pillarbox.ops.console.dead_letter_form import DeadLetterForm, DiffLine, diff_lines
from pillarbox.ops.console.payloads import SHOWN

JSON, TEXT = "application/json", "text/plain"
LIMIT = 2 * SHOWN


def dead_letter(payload: bytes = b'{"id":1}', kind: str = JSON, **headers: object) -> EventDetail:
    nothing = EventDetail._make([None] * len(EventDetail._fields))
    return nothing._replace(
        event_type="order.placed", payload=payload, content_type=kind, headers_json=json.dumps(headers)
    )


def sent(had: EventDetail, **fields: str) -> tuple[bytes, dict[str, str]]:
    """Return the content of a dead letter after a browser sent the form with these fields."""
    as_browsers_do = {name: text.replace("\n", "\r\n") for name, text in fields.items()}
    change = DeadLetterForm.of(had).filled(as_browsers_do).amendment(had, max_payload=LIMIT)
    return change.payload, dict(change.headers)


@pytest.mark.parametrize(
    ("payload", "kind", "shown"),
    [
        (b'{"id":1}', JSON, '{\n  "id": 1\n}\n'),
        (b'{"id": 1.10}', JSON, '{"id": 1.10}'),
        (b'{"id":', JSON, '{"id":'),
        ('{"a":"\u202e</textarea>\x85"}'.encode(), JSON, '{\n  "a": "\\u202e</textarea>\\u0085"\n}\n'),
        (b"\n\none\r\ntwo\r\n", TEXT, None),
        (b"\r\none\r\ntwo\r\n", TEXT, "\none\ntwo\n"),
        (b"\none\n\ttwo", TEXT, "\none\n\ttwo"),
        (b"one\rtwo", TEXT, None),
        (b"a\x00b", TEXT, None),
        ("\u202e".encode(), TEXT, None),
        (b"\xff\xfe", "application/octet-stream", None),
        (b"x" * (SHOWN + 1), TEXT, None),
        (b"[" + b"[1]," * (SHOWN // 8) + b"1]", JSON, None),
    ],
)
def test_a_payload_is_offered_as_text_if_it_round_trips(payload: bytes, kind: str, shown: str | None) -> None:
    had = dead_letter(payload, kind)
    assert DeadLetterForm.of(had).payload == shown
    assert sent(had, payload=shown or "typed nevertheless") == (payload, {})


@pytest.mark.parametrize(
    ("had", "typed", "payload"),
    [
        (dead_letter(), '{\n  "id": 2\n}\n', b'{"id":2}'),
        (dead_letter(b'{"id": 1.10}'), '{"id": 1.20}\n', b'{"id": 1.20}\n'),
        (dead_letter(b"one\r\ntwo", TEXT), "one\n2", b"one\r\n2"),
        (dead_letter(b"one\ntwo", TEXT), "one\n2", b"one\n2"),
        (dead_letter('{"a":"\x85"}'.encode()), '{\n  "a": "\\u0085", "b": 1\n}\n', '{"a":"\x85","b":1}'.encode()),
    ],
)
def test_edited_text_keeps_the_format_of_the_payload(had: EventDetail, typed: str, payload: bytes) -> None:
    assert sent(had, payload=typed)[0] == payload


def test_headers_are_changed_added_and_removed() -> None:
    had = dead_letter(tenant="acme", debug="1", url="https://a/b")
    assert DeadLetterForm.of(had).headers == "tenant: acme\ndebug: 1\nurl: https://a/b\n"
    assert sent(had, headers="\ntenant:umbrella  \nnew: a: b\nempty:\n")[1] == {
        "tenant": "umbrella",
        "new": "a: b",
        "empty": "",
    }
    assert sent(had, headers="")[1] == {}


def test_the_header_of_an_earlier_edit_is_hidden() -> None:
    had = dead_letter(tenant="acme", amended="0" * 64)
    assert DeadLetterForm.of(had).headers == "tenant: acme\n"
    assert sent(had, headers="")[1] == {"amended": "0" * 64}


@pytest.mark.parametrize("value", ["two\nlines", " blank", "\u202e", 1])
def test_headers_that_would_not_round_trip_stay_unchanged(value: object) -> None:
    had = dead_letter(odd=value)
    assert DeadLetterForm.of(had).headers is None
    assert sent(had, payload="{}", headers="") == (b"{}", {"odd": value})


@pytest.mark.parametrize(
    ("fields", "said", "field"),
    [
        ({"payload": "{"}, "not JSON", "payload"),
        ({"payload": f'["{"x" * LIMIT}"]'}, "max_payload", "payload"),
        ({"headers": "tenant"}, "line 1: write a name, a colon and a value", "headers"),
        ({"headers": "a: 1\n: 2"}, "line 2: write", "headers"),
        ({"headers": "a: 1\na: 2"}, "line 2: 'a' occurs twice", "headers"),
        ({"headers": "a: \x07"}, "control character", "headers"),
    ],
)
def test_values_that_could_not_be_recorded_are_rejected(fields: dict[str, str], said: str, field: str) -> None:
    with pytest.raises(RecordError, match=said) as refused:
        sent(dead_letter(), **fields)
    assert refused.value.field == field


def test_changes_are_shown_with_their_context() -> None:
    before = "".join(f"{number}\n" for number in range(20))
    after = before.replace("5\n", "five\n", 1).replace("18\n", "")
    found = list(diff_lines(before, after))
    assert found == [
        DiffLine("same", "3"), DiffLine("same", "4"), DiffLine("removed", "5"), DiffLine("added", "five"),
        DiffLine("same", "6"),
        DiffLine("same", "7"), DiffLine("gap", found[6].text),
        DiffLine("same", "16"), DiffLine("same", "17"), DiffLine("removed", "18"), DiffLine("same", "19"),
    ]  # fmt: skip
    assert list(diff_lines(before, before)) == []
    assert list(diff_lines("a", "a\n")) == [DiffLine("same", "a"), DiffLine("added", "")]
