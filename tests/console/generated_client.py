"""Generates a Python client from an OpenAPI document: a dataclass per schema, a method per operation.

It reads nothing but the document, so that a response that the document does not describe cannot be read with it.
"""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from types import ModuleType
from typing import Any

_HEAD = """
import dataclasses
from typing import Any, Literal

import httpx


def _read(value: Any, schema: dict[str, Any]) -> Any:
    if "$ref" in schema:
        return _MODELS[schema["$ref"].rpartition("/")[2]]._of(value)
    if "anyOf" in schema:
        for one in schema["anyOf"]:
            try:
                return _read(value, one)
            except TypeError:
                continue
        raise TypeError(f"{value!r} is none of {schema['anyOf']}")
    kind = schema.get("type")
    if kind is None:
        return value
    allowed = _KINDS[kind]
    if not isinstance(value, allowed) or (isinstance(value, bool) and kind != "boolean"):
        raise TypeError(f"{value!r} is no {kind}")
    if "enum" in schema and value not in schema["enum"]:
        raise TypeError(f"{value!r} is not one of {schema['enum']}")
    if kind == "array":
        return [_read(one, schema["items"]) for one in value]
    if kind == "object":
        return {name: _read(one, schema["additionalProperties"]) for name, one in value.items()}
    return value


class _Model:
    _schema: dict[str, Any]

    @classmethod
    def _of(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            raise TypeError(f"{value!r} is no object")
        described = cls._schema["properties"]
        missing, unknown = set(cls._schema["required"]) - set(value), set(value) - set(described)
        if missing or unknown:
            raise TypeError(f"{cls.__name__}: missing {sorted(missing)}, not described {sorted(unknown)}")
        return cls(**{_name(name): _read(one, described[name]) for name, one in value.items()})


def _name(name: str) -> str:
    return f"{name}_" if name in _KEYWORDS else name


_MODELS: dict[str, type[_Model]] = {}
_KINDS = {"string": str, "boolean": bool, "integer": int, "number": (int, float), "array": list, "object": dict}
_KINDS["null"] = type(None)
"""

_CLIENT = '''

class Client:
    """Calls the console."""

    def __init__(self, url: str, auth: tuple[str, str]) -> None:
        self._http = httpx.Client(base_url=url, auth=auth, timeout=60)

    def close(self) -> None:
        self._http.close()

    def _call(self, method: str, path: str, model: str, given: dict[str, Any]) -> Any:
        sent = {name.rstrip("_"): value for name, value in given.items() if value is not None}
        answer = self._http.request(method, path, **({"json": sent} if method == "post" else {"params": sent}))
        if answer.status_code != 200:
            raise RuntimeError(f"{answer.status_code}: {answer.json()['error']}")
        return _MODELS[model]._of(answer.json())
'''


def generate(document: Mapping[str, Any]) -> ModuleType:
    """Return the module of a client for the operations of an OpenAPI document."""
    parts = [f"{_HEAD}\n_KEYWORDS = {set(keyword.kwlist)!r}\n"]
    for name, schema in document["components"]["schemas"].items():
        fields = [
            f"    {_python(one)}: Any{'' if one in schema['required'] else ' = None'}"
            for one in sorted(schema["properties"], key=lambda one: one not in schema["required"])
        ]
        parts.append(f"\n\n@dataclasses.dataclass(kw_only=True)\nclass {name}(_Model):\n" + "\n".join(fields))
        parts.append(f"\n\n{name}._schema = {schema!r}\n_MODELS[{name!r}] = {name}")
    parts.append(_CLIENT)
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            parts.append(_method(path, method, operation))
    module = ModuleType("generated_console_client")
    exec(compile("".join(parts), "client", "exec", dont_inherit=True), module.__dict__)  # noqa: S102  # our own text
    return module


def _method(path: str, method: str, operation: Mapping[str, Any]) -> str:
    if method == "post":
        names = list(operation["requestBody"]["content"]["application/json"]["schema"]["properties"])
    else:
        names = [parameter["name"] for parameter in operation.get("parameters", ())]
    schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
    model = schema["$ref"].rpartition("/")[2]
    arguments = "".join(f", {_python(name)}: Any = None" for name in names)
    given = ", ".join(f"{name!r}: {_python(name)}" for name in names)
    star = ", *" if names else ""
    return (
        f"\n    def {operation['operationId']}(self{star}{arguments}) -> {model}:\n"
        f"        return self._call({method!r}, {path!r}, {model!r}, {{{given}}})\n"
    )


def _python(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) else name
