"""Payloads have the same bytes with and without orjson."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pillarbox import RecordError
from pillarbox.record import encoding
from pillarbox.record.encoding import encode

numbers = st.integers() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
atoms = st.none() | st.booleans() | numbers | st.text()
values = st.recursive(atoms, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=30)
payloads = st.dictionaries(st.text(), values) | st.lists(values)

anything = st.recursive(
    atoms | st.floats() | st.text(st.characters()) | st.binary() | st.sets(st.integers()) | st.datetimes(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters()) | st.integers(), inner) | st.tuples(inner),
    max_leaves=10,
)


def _reference(payload: Any) -> bytes:
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _without_orjson(payload: Any) -> bytes:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "_fast", None)
        return encode(payload)


def _outcome(encoder: Any, payload: Any) -> bytes | str:
    try:
        result: bytes = encoder(payload)
    except RecordError as error:
        return str(error)
    return result


def test_orjson_is_installed_for_these_tests() -> None:
    assert encoding._fast is not None


@given(payloads)
@example({"": '\x00\x1f\x7f\u2028\U0001f389 " \\ / \b\f\n\r\t'})
@example({"numbers": [2**63 - 1, 2**63, 2**64, -(2**63), -(2**63) - 1, 10**400]})
@example({"floats": [1e16, 1e22, 1e-7, 0.1, -0.0, 5e-324, 1.7976931348623157e308, 1.0]})
@example({"": [[[[[{}]]]]]})
def test_both_encoders_write_the_same_bytes(payload: Any) -> None:
    encoded = encode(payload)
    assert encoded == _without_orjson(payload) == _reference(payload)
    assert json.loads(encoded) == payload


@given(anything)
def test_both_encoders_reject_with_the_same_error(payload: Any) -> None:
    assert _outcome(encode, payload) == _outcome(_without_orjson, payload)
