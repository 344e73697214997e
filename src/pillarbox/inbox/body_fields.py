"""Where a foreign producer's body says what the properties of its messages do not.

Spring's `convertAndSend`, for one, sets no `message_id` and no `type`: its message is a JSON object that carries both.
Properties and headers win: a field of the body is read only where they say nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any, cast

from pillarbox.core.errors import ConfigurationError, PermanentError

_MISSING = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyFields:
    """Paths of fields in a JSON body, with dots between the levels: `event_id`, `meta.id`. None: not in the body.

    Raises ConfigurationError.
    """

    event_id: str | None = None
    event_type: str | None = None
    aggregate_type: str | None = None
    aggregate_id: str | None = None
    payload: str | None = None
    """What a function gets as the payload of a message that has its id from the body; None: the whole body."""

    def __post_init__(self) -> None:
        for field in fields(self):
            path = getattr(self, field.name)
            if path is not None and not (isinstance(path, str) and all(path.split("."))):
                raise ConfigurationError(
                    f"body_fields.{field.name} is {path!r}; name a field of the body, such as event_id or meta.id"
                )


class Body:
    """A body that is asked for fields where the properties say nothing; decoded when it is first asked."""

    def __init__(self, raw: bytes, paths: BodyFields | None) -> None:
        self._raw = raw
        self._paths = paths or BodyFields()
        self._decoded: object = _MISSING
        self.was_needed = False
        """Whether the id or the type is in it: then it is JSON, whatever its content type."""

    def text(self, name: str) -> str | None:
        """A field as text; None if no path is set for it, or nothing is there. Raises PermanentError for a value that
        is neither text nor a whole number."""
        path = self._path(name)
        value = None if path is None else self._at(path)
        if value is None or value == "":
            return None
        self.was_needed |= name in ("event_id", "event_type")
        if isinstance(value, str):
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        raise PermanentError(
            f"the field {path!r} of the body is of JSON type {type(value).__name__}, not text; correct the producer"
        )

    @property
    def payload(self) -> Any:
        """The field that is the payload, or all of it. Raises PermanentError if there is no such field."""
        if (path := self._paths.payload) is None:
            return self._object()
        if (found := self._at(path)) is None:
            raise PermanentError(f"its body has no field {path!r} (body_fields.payload); correct the producer")
        return found

    def says(self, name: str) -> str:
        """The end of a sentence on what neither the properties nor the body say."""
        if (path := self._path(name)) is None:
            return f"; if its body says it, name the field: Consumer(body_fields=BodyFields({name}=…))"
        if not isinstance(self._object(), dict):
            return f", and its body is not a JSON object that could have the field {path!r} (body_fields.{name})"
        return f", nor has its body the field {path!r} (body_fields.{name})"

    def _path(self, name: str) -> str | None:
        path: str | None = getattr(self._paths, name)
        return path

    def _at(self, path: str) -> Any:
        found: Any = self._object()
        for step in path.split("."):
            if not isinstance(found, dict):
                return None
            found = cast("dict[str, Any]", found).get(step)
        return found

    def _object(self) -> object:
        if self._decoded is _MISSING:
            try:
                self._decoded = json.loads(self._raw)
            except (ValueError, RecursionError):
                self._decoded = None
        return self._decoded
