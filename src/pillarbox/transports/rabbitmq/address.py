"""Where a message goes on a broker: an exchange and a routing key with places for what the message knows.

A routing key is checked when the address is made; what only a message can get wrong (a value it lacks, a key that
grows too long) is that message's own error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from string import Formatter

from pillarbox.core.errors import ConfigurationError, PermanentError
from pillarbox.core.message import Message
from pillarbox.core.transport import Address
from pillarbox.settings import Text, setting
from pillarbox.transports.rabbitmq.names import LONGEST, check_name, fits

PLACEHOLDERS = ("event_type", "aggregate_type", "aggregate_id", "key")


@dataclass(frozen=True, slots=True, kw_only=True)
class RabbitMQAddress(Address):
    """An exchange and a routing key; '' is the default exchange, whose routing key is a queue's name."""

    exchange: str = setting(
        "", Text(), "The exchange. Empty: the default exchange, whose routing key is the name of a queue."
    )
    routing_key: str = setting(
        "{event_type}",
        Text(),
        "The routing key, which may contain `{event_type}`, `{aggregate_type}`, `{aggregate_id}` and `{key}`.",
    )
    _parts: tuple[tuple[str, str], ...] = field(init=False, repr=False, compare=False)
    fixed_key: str | None = field(init=False, repr=False, compare=False)
    """The routing key where it asks for nothing of the message."""

    def __post_init__(self) -> None:
        if self.exchange != "":
            check_name("the exchange", self.exchange)
        parts = _parsed(self.routing_key)
        if self.exchange == "" and not parts:
            raise ConfigurationError("the default exchange needs a routing key: the name of a queue")
        object.__setattr__(self, "_parts", parts)
        fixed = None if any(name for _, name in parts) else "".join(literal for literal, _ in parts)
        object.__setattr__(self, "fixed_key", fixed)

    def key_for(self, message: Message) -> str:
        """The routing key of this message. Raises PermanentError if it lacks a value or the key cannot be sent."""
        if self.fixed_key is not None:
            return self.fixed_key
        key = "".join(
            literal if not name else literal + _value(message, name, self.routing_key) for literal, name in self._parts
        )
        if not fits(key):
            raise PermanentError(
                f"the routing key of event {message.event_id} cannot be sent: longer than {LONGEST} bytes or not "
                f"UTF-8 ({key[:40]!r}…); shorten {self.routing_key!r} or the values in it"
            )
        return key


def _parsed(template: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(template, str):
        raise ConfigurationError(f"a routing key is text, not {type(template).__name__}")
    try:
        found = list(Formatter().parse(template))
    except ValueError as error:
        raise ConfigurationError(f"the routing key {template!r} cannot be read: {error}") from None
    for _, name, form, conversion in found:
        if name is not None and (name not in PLACEHOLDERS or form or conversion):
            raise ConfigurationError(
                f"the routing key {template!r} asks for {{{name}}}; it may ask for "
                + ", ".join(f"{{{known}}}" for known in PLACEHOLDERS)
            )
    literals = "".join(literal for literal, *_ in found)
    if not literals.isprintable() or not fits(literals):
        raise ConfigurationError(f"the routing key {template[:40]!r} has control characters or is too long")
    return tuple((literal, name or "") for literal, name, *_ in found)


def _value(message: Message, name: str, template: str) -> str:
    value: str | None = getattr(message, name)
    if value is None:
        raise PermanentError(f"the routing key {template!r} needs {name}, which event {message.event_id} does not have")
    return value
