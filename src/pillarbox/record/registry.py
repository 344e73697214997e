"""The registry of event types: validation, version, destination and upcasting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from pillarbox.core.errors import ConfigurationError, RecordError
from pillarbox.core.event import MAX_SCHEMA_VERSION, MAX_TEXT_BYTES, check_text
from pillarbox.record.payload_paths import dotted

Upcaster = Callable[[Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventType:
    """A registered event type."""

    name: str
    version: int = 1
    """The schema version of events without one."""
    validator: Any = None
    """A pydantic model, or a callable that raises or returns False for an invalid payload."""
    upcasters: Mapping[int, Upcaster] = field(default_factory=dict[int, Upcaster])
    """Version → function that converts its payload to the next version."""
    destination: str = ""
    """The destination of events without one."""

    def __post_init__(self) -> None:
        check_name("event_type", self.name)
        if self.destination != "":
            check_name("destination", self.destination)
        _check_version(self.name, self.version)
        _check_validator(self.name, self.validator)
        _check_steps(self.name, self.version, self.upcasters)
        object.__setattr__(self, "upcasters", MappingProxyType(dict(self.upcasters)))

    def validate(self, payload: object) -> None:
        """Raise RecordError, with the path if it is known, unless the validator accepts the payload."""
        if self.validator is None:
            return
        validate = getattr(self.validator, "model_validate", self.validator)
        try:
            valid = validate(payload)
        except Exception as error:
            raise RecordError(f"{self.name}: {_explain(error)}", field="payload") from error
        if valid is False:
            raise RecordError(
                f"{self.name}: the validator rejects the payload; correct the payload or the validator",
                field="payload",
            )


class EventTypes:
    """The registry of event types. Other types are recorded without validation, unless it is `strict`."""

    def __init__(self, *, strict: bool = False) -> None:
        self._strict = strict
        self._types: dict[str, EventType] = {}

    def register(
        self,
        event_type: str,
        *,
        version: int = 1,
        validator: Any = None,
        upcasters: Mapping[int, Upcaster] | None = None,
        destination: str = "",
    ) -> EventType:
        """Register a type. Raises ConfigurationError for a second registration or a missing upcasting step."""
        if event_type in self._types:
            raise ConfigurationError(f"{event_type} is already registered; register each type once")
        known = EventType(
            name=event_type,
            version=version,
            validator=validator,
            upcasters=upcasters or {},
            destination=destination,
        )
        self._types[event_type] = known
        return known

    def find(self, event_type: str) -> EventType | None:
        """The registered type; None if there is none. Raises RecordError then if the registry is strict."""
        known = self._types.get(event_type)
        if known is None and self._strict:
            raise RecordError(
                f"event type {event_type!r} is not registered; register it, or make EventTypes not strict",
                field="event_type",
            )
        return known

    def upcast(self, event_type: str, version: int, payload: Any) -> Any:
        """Convert a payload of an older version to the registered version; payloads of other types stay unchanged.

        Raises ConfigurationError for a version without upcaster, and for one newer than the registered version.
        """
        known = self._types.get(event_type)
        if known is None or version == known.version:
            return payload
        if version > known.version:
            raise ConfigurationError(
                f"{event_type}: version {version} is newer than the registered {known.version}; "
                "deploy the release that registers it"
            )
        for step in range(version, known.version):
            if step not in known.upcasters:
                raise ConfigurationError(
                    f"{event_type}: there is no upcaster for version {step}; register upcasters={{{step}: …}}"
                )
            payload = known.upcasters[step](payload)
        return payload


def check_name(name: str, value: object) -> None:
    try:
        check_text(name, value, MAX_TEXT_BYTES)
    except RecordError as error:
        raise ConfigurationError(str(error)) from None


def _check_version(name: str, version: object) -> None:
    if not isinstance(version, int) or isinstance(version, bool) or not 1 <= version <= MAX_SCHEMA_VERSION:
        raise ConfigurationError(f"{name}: version must be an integer of 1 or more, not {version!r}")


def _check_validator(name: str, validator: object) -> None:
    if validator is None or hasattr(validator, "model_validate"):
        return
    if isinstance(validator, type):
        raise ConfigurationError(
            f"{name}: the class {validator.__name__} cannot validate; pass a pydantic model or a function"
        )
    if not callable(validator):
        raise ConfigurationError(f"{name}: validator must be a pydantic model or a function, not {validator!r}")


def _check_steps(name: str, version: int, upcasters: Mapping[Any, Any]) -> None:
    if not upcasters:
        return
    if not all(isinstance(step, int) and callable(upcast) for step, upcast in upcasters.items()):
        raise ConfigurationError(f"{name}: upcasters must map whole numbers to functions; correct the mapping")
    missing = sorted(set(range(min(upcasters), version)) - set(upcasters))
    if missing:
        raise ConfigurationError(f"{name}: there is no upcaster from version {missing[0]} to {missing[0] + 1}; add it")
    if max(upcasters) >= version or min(upcasters) < 1:
        raise ConfigurationError(f"{name}: upcasters must be for versions 1 to {version - 1}, not for {max(upcasters)}")


def _explain(error: Exception) -> str:
    """The text of an error; of a pydantic error the path without the value, which may be secret."""
    list_errors: Any = getattr(error, "errors", None)
    if not callable(list_errors):
        return str(error) or type(error).__name__
    problems: Any = list_errors(include_input=False, include_url=False)
    first = problems[0]
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return f"{dotted(first['loc'])}: {first['msg']}{more}"
