"""Encodes payloads as compact UTF-8 JSON: the same bytes whether or not orjson is installed.

The standard library's encoder is the reference. Values that it would change silently (numbers as keys, NaN, times
without zone) are rejected with their path. Bytes stay unchanged.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from pillarbox.core.errors import RecordError
from pillarbox.record.payload_paths import dotted

DEEPEST = 100
"""The most levels of nesting; more is most likely a structure that contains itself."""

_ATOMS = frozenset((str, int, bool, type(None)))

_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode

try:
    from orjson import dumps as _orjson
except ImportError:  # an optional accelerator
    _fast: Callable[[Any], bytes] | None = None
else:
    _fast = _orjson


# What a payload needs before it is encoded: nothing; nothing, but not orjson, which writes floats differently; or
# conversion by the reference.
_PLAIN, _FLOATS, _OTHER = range(3)

_type: Callable[[object], type[object]] = type


def encode(payload: Any) -> bytes:
    """The bytes of a payload. Raises RecordError, naming the path, for a value that JSON cannot represent."""
    if isinstance(payload, (bytes, bytearray, memoryview)):
        return bytes(payload)  # pyright: ignore[reportUnknownArgumentType]  # a memoryview of any items
    form = _form(payload, DEEPEST)
    try:
        if form == _PLAIN and _fast is not None:
            return _fast(payload)
        if form != _OTHER:
            return _json(payload).encode()
    except (TypeError, ValueError):
        pass  # a lone surrogate, NaN, or a number too long for one of them: the reference decides
    return _reference(payload)


def _form(value: Any, depth: int) -> int:
    kind = _type(value)
    if not depth or (kind is not dict and kind is not list):
        return _OTHER
    if kind is dict:
        for key in value:
            if type(key) is not str:
                return _OTHER
        value = value.values()
    form = _PLAIN
    for item in value:
        kind = _type(item)
        if kind not in _ATOMS:
            form = max(form, _FLOATS if kind is float else _form(item, depth - 1))
    return form


def _reference(payload: object) -> bytes:
    try:
        plain = _normal(payload, DEEPEST)
    except _InvalidValue as refused:
        path = dotted(reversed(refused.steps))
        raise RecordError(f"{path}: {refused.reason}", field="payload") from refused.__cause__
    if not isinstance(plain, (dict, list)):
        raise RecordError(
            f"payload: {type(payload).__name__} at the top level is rejected: no field could be added to it later; "
            "wrap it in a dict, or pass bytes",
            field="payload",
        )
    return _json(plain).encode()


class _InvalidValue(Exception):
    """An invalid value; each level of nesting adds its step to the path."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.steps: list[str | int] = []


def _normal(value: Any, depth: int) -> Any:
    """`value` made of exact dicts with text keys, lists, str, int, finite float, bool and None."""
    if value is None or value is True or value is False:
        return value
    if isinstance(value, Enum):
        return _normal(value.value, depth)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return _number(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _InvalidValue(f"{value!r} is not a valid JSON number; leave it out or pass None")
        return float(value)
    if isinstance(value, (dict, list, tuple)):
        return _container(value, depth)  # pyright: ignore[reportUnknownArgumentType]  # it takes any items
    return _object(value, depth)


def _container(value: dict[Any, Any] | list[Any] | tuple[Any, ...], depth: int) -> Any:
    if not depth:
        raise _InvalidValue(f"nested deeper than {DEEPEST} levels, or it contains itself; flatten it")
    if isinstance(value, dict):
        return {_key(key): _at(key, item, depth) for key, item in value.items()}
    return [_at(index, item, depth) for index, item in enumerate(value)]


def _at(step: str | int, value: Any, depth: int) -> Any:
    try:
        return _normal(value, depth - 1)
    except _InvalidValue as refused:
        refused.steps.append(step)
        raise


def _key(key: Any) -> str:
    if not isinstance(key, str) or isinstance(key, Enum):
        raise _InvalidValue(f"a key is {type(key).__name__}, and JSON has text keys only; pass str(…) of it")
    try:
        return _text(key)
    except _InvalidValue as refused:
        raise _InvalidValue(f"the key {key[:80]!r}: {refused.reason}") from None


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise _InvalidValue(
            f"a lone surrogate at position {error.start}, which UTF-8 cannot carry; "
            "decode the source with the right encoding"
        ) from None
    return str.__str__(value)


def _number(value: int) -> int:
    try:
        int.__repr__(value)
    except ValueError:
        raise _InvalidValue("a whole number with thousands of digits; pass it as text") from None
    return int(value)


def _object(value: Any, depth: int) -> Any:
    if isinstance(value, datetime):
        if value.utcoffset() is None:
            raise _InvalidValue(
                "a datetime without time zone, so its time is ambiguous; pass datetime.now(UTC) or .replace(tzinfo=…)"
            )
        return value.isoformat()
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise _InvalidValue(f"{value} is not a number; leave it out or pass None")
        return str(value)
    if isinstance(value, UUID):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return _container({field.name: getattr(value, field.name) for field in fields(value)}, depth)
    if callable(dump := getattr(_type(value), "model_dump", None)):
        return _normal(_dumped(dump, value), depth)
    raise _InvalidValue(f"{type(value).__name__} cannot be encoded as JSON; {_hint(value)}")


def _dumped(dump: Callable[..., Any], model: object) -> Any:
    """A pydantic model as Python values, so that the same rules apply to its fields."""
    try:
        return dump(model, mode="python")
    except Exception as error:
        raise _InvalidValue(f"{type(model).__name__} cannot be dumped: {error}") from error


def _hint(value: object) -> str:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "encode it as base64 text, or pass the whole payload as bytes"
    if isinstance(value, (set, frozenset)):
        return "pass a sorted list of it"
    return "pass a dict, a dataclass, a pydantic model or text made of it"
