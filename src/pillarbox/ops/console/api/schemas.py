"""JSON schemas of the types of responses."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Any, Literal, NotRequired, Union, cast, get_args, get_origin, get_type_hints, is_typeddict

_PLAIN = {str: "string", bool: "boolean", int: "integer", float: "number", NoneType: "null"}


def reference(model: type[Any]) -> dict[str, Any]:
    """Return the reference to the schema of a response type."""
    return {"$ref": f"#/components/schemas/{schema_name(model)}"}


def schema_name(model: type[Any]) -> str:
    """Return the name of a response type in the document."""
    return model.__name__.removesuffix("Json")


def schemas_of(*models: type[Any]) -> dict[str, Any]:
    """Return the schemas of these types and of all types that they contain, by name."""
    found: dict[str, Any] = {}
    for model in models:
        _add(model, found)
    return dict(sorted(found.items()))


def _add(model: type[Any], found: dict[str, Any]) -> None:
    if schema_name(model) in found:
        return
    hints = get_type_hints(model, include_extras=True)
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {},
        "required": sorted(name for name, hint in hints.items() if get_origin(hint) is not NotRequired),
        "additionalProperties": False,
    }
    found[schema_name(model)] = schema
    schema["properties"] = {name: _schema(hint, found) for name, hint in hints.items()}


def _schema(hint: Any, found: dict[str, Any]) -> dict[str, Any]:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return {}
    if origin is NotRequired:
        return _schema(arguments[0], found)
    if origin is Literal:
        return {"type": "string", "enum": list(arguments)}
    if origin in (Union, UnionType):
        return {"anyOf": [_schema(one, found) for one in arguments]}
    if origin is list:
        return {"type": "array", "items": _schema(arguments[0], found)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(arguments[1], found)}
    if is_typeddict(hint):
        _add(cast("type[Any]", hint), found)
        return reference(cast("type[Any]", hint))
    return {"type": _PLAIN[hint]}
