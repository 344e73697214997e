import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.ops.console import json_text

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES)
def test_the_shown_text_is_the_same_document(value: object) -> None:
    raw = json.dumps(value).encode()
    assert json.loads(json_text.text(json_text.parse(raw))) == value


@pytest.mark.parametrize(
    "digits", ["12345678901234567890", "0.1000", "1e400", "-0", "1.7976931348623157e309", "10" * 200]
)
def test_numbers_keep_every_digit(digits: str) -> None:
    assert json_text.text(json_text.parse(f'{{"n":{digits}}}'.encode())) == f'{{\n  "n": {digits}\n}}'


def test_names_keep_their_order_and_their_repeats() -> None:
    assert json_text.text(json_text.parse(b'{"b":1,"a":2,"b":3}')) == '{\n  "b": 1,\n  "a": 2,\n  "b": 3\n}'


@pytest.mark.parametrize("raw", [b"", b"{", b"NaN", b"\xff", b"[" * 200 + b"]" * 200, b"[" * 100_000])
def test_invalid_json_is_reported(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        json_text.parse(raw)


def test_fragments_of_json_have_their_kind() -> None:
    kinds = [
        (piece.kind, piece.text)
        for piece in json_text.pieces(json_text.parse(b'{"a":[1,"x",null,{},[]]}'))
        if piece.kind
    ]
    assert kinds == [("name", '"a"'), ("number", "1"), ("text", '"x"'), ("word", "null")]
