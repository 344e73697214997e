"""Recognizing JSON content types and documents."""

import pytest

from pillarbox.core.payload import is_json, parse_json


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        " application/json ;charset=utf-8",
        "text/json",
        "application/cloudevents+json",
        "application/vnd.shop.v2+json; profile=x",
    ],
)
def test_json_content_types(content_type: str) -> None:
    assert is_json(content_type)


@pytest.mark.parametrize(
    "content_type",
    [
        "",
        "text/plain",
        "application/octet-stream",
        "application/x-ndjson",
        "application/jsonlines",
        "json",
        "image/jpeg",
    ],
)
def test_other_content_types(content_type: str) -> None:
    assert not is_json(content_type)


@pytest.mark.parametrize(
    ("document", "value"),
    [('{"a": [1, null]}', {"a": [1, None]}), (b'"text"', "text"), ("1e400", float("inf")), (b"null", None)],
)
def test_a_document_is_parsed(document: str | bytes, value: object) -> None:
    assert parse_json(document) == value


@pytest.mark.parametrize("document", ["", "{", "NaN", "[Infinity]", "-Infinity", b"\xff\xfe\xff", "[" * 100_000])
def test_invalid_json_is_a_value_error(document: str | bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the text is Python's own
        parse_json(document)
