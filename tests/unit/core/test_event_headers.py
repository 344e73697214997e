"""Headers map valid text to valid text and are copied when the event is created."""

from collections.abc import Mapping
from typing import Any

import pytest

from pillarbox import Event, RecordError
from pillarbox.core.event import MAX_HEADER_BYTES, MAX_HEADERS


def _refused(headers: Any, reason: str) -> None:
    with pytest.raises(RecordError, match=reason) as caught:
        Event("order.placed", {}, headers=headers)
    assert caught.value.field == "headers"


@pytest.mark.parametrize("control", ["\x00", "\r\n", "\x85", "\u2028"])
def test_control_characters_are_rejected(control: str) -> None:
    _refused({f"x{control}": "value"}, "the control character")
    _refused({"x-name": f"a{control}b"}, r"headers\['x-name'\] has the control character")


def test_lone_surrogates_are_rejected() -> None:
    _refused({"x\udfff": "value"}, "lone surrogate")
    _refused({"x-name": "\ud800"}, "lone surrogate")


def test_names_and_values_must_be_text() -> None:
    _refused({1: "value"}, "the name 1 must be text")
    _refused({"x-name": 1}, r"headers\['x-name'\] must be text, not int")
    _refused({"x-name": None}, "must be text, not NoneType")


@pytest.mark.parametrize("headers", [None, [("a", "b")], "a=b", 7])
def test_only_a_mapping_is_accepted(headers: object) -> None:
    _refused(headers, "must be a mapping")


def test_an_empty_name_is_rejected_and_an_empty_value_accepted() -> None:
    _refused({"": "value"}, "is empty")
    assert Event("order.placed", {}, headers={"x-name": ""}).headers == {"x-name": ""}


def test_too_many_or_too_long_headers_are_rejected() -> None:
    _refused({f"x-{n}": "" for n in range(MAX_HEADERS + 1)}, f"at most {MAX_HEADERS}")
    _refused({"x-name": "x" * (MAX_HEADER_BYTES + 1)}, "put it in the payload")
    _refused({"x" * 256: ""}, "the limit is 255")


def test_later_changes_of_the_mapping_do_not_affect_the_event() -> None:
    given = {"x-name": "before"}
    event = Event("order.placed", {}, headers=given)
    given["x-name"] = "after"
    headers: Mapping[str, str] = event.headers
    assert headers == {"x-name": "before"}
    with pytest.raises(TypeError):
        headers["x-name"] = "after"  # type: ignore[index]  # a mapping is read-only, also for those who do not check
