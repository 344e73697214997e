"""The name that an address takes from a message: `orders.{event_type}` is a routing key, topic, subject or stream.

A template is checked when the address is created. What only a message can get wrong (a value it lacks, a name that
grows too long) is an error of that message.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from string import Formatter

from pillarbox.core.errors import ConfigurationError, PermanentError
from pillarbox.core.message import Message

PLACEHOLDERS = ("event_type", "aggregate_type", "aggregate_id", "key")
NOT_IN_NAMES = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Control characters and lone surrogates, which `record` does not accept in an event either."""


@dataclass(frozen=True, slots=True)
class AddressTemplate:
    """Literal text and placeholders. `what` names it in errors: "the routing key"."""

    what: str
    text: str
    parts: tuple[tuple[str, str], ...]
    """Literal text, each followed by the placeholder after it; '': none follows."""
    fixed: str | None
    """The name if it is the same for every message."""

    @classmethod
    def parse(cls, what: str, text: object) -> AddressTemplate:
        """Raises ConfigurationError."""
        if not isinstance(text, str):
            raise ConfigurationError(f"{what} is text, not {type(text).__name__}")
        try:
            found = list(Formatter().parse(text))
        except ValueError as error:
            raise ConfigurationError(f"{what} {text!r} cannot be read: {error}") from None
        for _, name, form, conversion in found:
            if name is not None and (name not in PLACEHOLDERS or form or conversion):
                raise ConfigurationError(
                    f"{what} {text!r} asks for {{{name}}}; it may ask for "
                    + ", ".join(f"{{{known}}}" for known in PLACEHOLDERS)
                )
        if NOT_IN_NAMES.search("".join(literal for literal, *_ in found)):
            raise ConfigurationError(f"{what} {text[:40]!r} has a control character or a lone surrogate; remove it")
        parts = tuple((literal, name or "") for literal, name, *_ in found)
        fixed = None if any(name for _, name in parts) else "".join(literal for literal, _ in parts)
        return cls(what, text, parts, fixed)

    @property
    def literals(self) -> str:
        """The text without its placeholders: what every name contains."""
        return "".join(literal for literal, _ in self.parts)

    def name_for(self, message: Message) -> str:
        """Raises PermanentError if the message lacks a value."""
        if self.fixed is not None:
            return self.fixed
        return "".join(literal if not name else literal + self._value(message, name) for literal, name in self.parts)

    def _value(self, message: Message, name: str) -> str:
        value: str | None = getattr(message, name)
        if value is None:
            raise PermanentError(
                f"{self.what} {self.text!r} needs {name}, which event {message.event_id} does not have"
            )
        return value
