"""JSON schemas of the fields of a request. The document has them, and the values of a body are checked with them.

Invariant: a value of another type is rejected. Converted to text, it would be a filter that matches other events.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, cast, get_args

from pillarbox.admin.states import EventState
from pillarbox.core.errors import ConfigurationError
from pillarbox.core.message import Status

TEXT: Final[Mapping[str, Any]] = {"type": "string", "pattern": r"\S"}
"""A text that is not blank: a blank filter would match more."""

_INTEGER: Final[Mapping[str, Any]] = {"type": "integer"}
_TEXTS: Final[Mapping[str, Any]] = {"type": "array", "items": {"type": "string"}}


def choice(names: Iterable[str]) -> Mapping[str, Any]:
    """Return the schema of a text that is one of these."""
    return {"type": "string", "enum": list(names)}


def choice_of(literal: Any) -> Mapping[str, Any]:
    """Return the schema of the texts of a `Literal`."""
    return choice(get_args(literal))


def number(least: int, most: int) -> Mapping[str, Any]:
    """Return the schema of a whole number."""
    return {"type": "integer", "minimum": least, "maximum": most}


FIELD_SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    **{name: {"type": "boolean"} for name in ("all", "dry_run", "force")},
    **dict.fromkeys(("count", "dead_letter_id"), _INTEGER),
    **dict.fromkeys(("ids", "removed"), _TEXTS),
    "headers": {"type": "object", "additionalProperties": {"type": "string"}},
    "payload": {},
    "state": choice(EventState),
    "status": choice(Status),
}
"""The schemas of fields that are not any text, by their name."""

_KINDS: Final[Mapping[str, tuple[type, str]]] = {
    "string": (str, "a string"),
    "boolean": (bool, "true or false"),
    "integer": (int, "a whole number"),
    "array": (list, "a list of strings"),
    "object": (dict, "an object of strings"),
}


def check_value(name: str, value: object, schema: Mapping[str, Any]) -> None:
    """Raises ConfigurationError for a value of another type, and for a blank text."""
    if "type" not in schema:
        return
    kind, said = _KINDS[schema["type"]]
    within: Collection[object] = ()
    match value:
        case list():
            within = cast("list[object]", value)
        case dict():
            within = cast("dict[object, object]", value).values()
        case _:
            pass
    is_flag = isinstance(value, bool)
    if not isinstance(value, kind) or is_flag != (kind is bool) or not all(isinstance(one, str) for one in within):
        raise ConfigurationError(f"{name} is not {said}: {value!r:.100}")
    if "pattern" in schema and isinstance(value, str) and not value.strip():
        raise ConfigurationError(f"{name} is empty: give a value, or omit the field")
