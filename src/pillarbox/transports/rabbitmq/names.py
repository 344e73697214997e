"""What may be a name on the wire: at most 255 bytes of UTF-8, nothing that breaks a log line."""

from __future__ import annotations

from pillarbox.core.errors import ConfigurationError

LONGEST = 255


def fits(text: str) -> bool:
    """Whether it can be sent as an AMQP short string."""
    if text.isascii():
        return len(text) <= LONGEST
    try:
        return len(text.encode()) <= LONGEST
    except UnicodeEncodeError:
        return False


def check_name(what: str, name: object) -> None:
    """Raise ConfigurationError unless it is a clean, non-empty name; '' is the default exchange and never declared."""
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f"{what} must have a name, not {name!r}")
    if not name.isprintable():
        raise ConfigurationError(f"{what} {name!r} has a control character or a lone surrogate; remove it")
    if not fits(name):
        raise ConfigurationError(f"{what} {name[:40]!r}… is longer than {LONGEST} bytes; choose a shorter name")
