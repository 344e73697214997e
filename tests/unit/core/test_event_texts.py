"""Texts of an event must be valid, not empty and not too long; errors name the field."""

from typing import Any

import pytest

from pillarbox import Event, RecordError

REQUIRED = ["event_type", "event_id"]
OPTIONAL = ["aggregate_type", "aggregate_id", "key", "content_type", "correlation_id", "causation_id", "trace_id"]
EVERY = [*REQUIRED, *OPTIONAL, "destination"]
CONTROLS = ["\x00", "\t", "\n", "\r", "\x1b", "\x1f", "\x7f", "\x85", "\x9f", "\u2028", "\u2029"]


def _event(**fields: Any) -> Event:
    return Event(**{"event_type": "order.placed", "payload": {}} | fields)


@pytest.mark.parametrize("field", EVERY)
@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: f"U+{ord(control):04X}")
@pytest.mark.parametrize("text", ["{}", "a{}b", "ä{}"])
def test_control_characters_are_rejected(field: str, control: str, text: str) -> None:
    with pytest.raises(RecordError, match=rf"{field} has the control character U\+{ord(control):04X} at") as caught:
        _event(**{field: text.format(control)})
    assert caught.value.field == field


@pytest.mark.parametrize("field", EVERY)
def test_lone_surrogates_are_rejected(field: str) -> None:
    with pytest.raises(RecordError, match=f"{field} has a lone surrogate at position 2") as caught:
        _event(**{field: "ab\ud800"})
    assert caught.value.field == field


@pytest.mark.parametrize("field", [*REQUIRED, *OPTIONAL])
def test_empty_texts_are_rejected(field: str) -> None:
    with pytest.raises(RecordError, match=f"{field} is empty") as caught:
        _event(**{field: ""})
    assert caught.value.field == field


@pytest.mark.parametrize("field", EVERY)
@pytest.mark.parametrize("value", [42, b"text", ["text"], 1.5, object()], ids=lambda value: type(value).__name__)
def test_values_other_than_text_are_rejected(field: str, value: object) -> None:
    with pytest.raises(RecordError, match=f"{field} must be text, not {type(value).__name__}") as caught:
        _event(**{field: value})
    assert caught.value.field == field


@pytest.mark.parametrize("field", ["event_type", "event_id", "destination"])
def test_none_is_rejected_for_required_texts(field: str) -> None:
    with pytest.raises(RecordError, match=f"{field} must be text"):
        _event(**{field: None})


@pytest.mark.parametrize("field", EVERY)
def test_the_limit_counts_bytes_of_utf8(field: str) -> None:
    longest = 200 if field == "event_id" else 255
    for text in ("x" * longest, "ä" * (longest // 2)):
        assert getattr(_event(**{field: text}), field) == text
    for text in ("x" * (longest + 1), "ä" * (longest // 2 + 1)):
        with pytest.raises(
            RecordError, match=f"{field} has {len(text.encode())} bytes.*the limit is {longest}"
        ) as caught:
            _event(**{field: text})
        assert caught.value.field == field


@pytest.mark.parametrize("field", EVERY)
@pytest.mark.parametrize("text", ["evt-001", "a b", "漢字 🎉", 'it\'s "quoted" \\ 100 %', "\u00a0"])
def test_any_other_text_is_accepted_unchanged(field: str, text: str) -> None:
    assert getattr(_event(**{field: text}), field) == text
