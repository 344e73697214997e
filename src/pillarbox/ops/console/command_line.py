"""The CLI command that is equivalent to a page, quoted for a shell."""

from __future__ import annotations

import shlex
from collections.abc import Mapping


def command(verb: str, event_id: str | None = None, options: Mapping[str, object] | None = None) -> str:
    """Return `pillarbox VERB --name value … id`."""
    parts = [f"--{name} {quoted(str(value))}" for name, value in (options or {}).items()]
    if event_id is not None:
        parts += [f"-- {quoted(event_id)}" if event_id.startswith("-") else quoted(event_id)]
    return " ".join(["pillarbox", verb, *parts])


def quoted(text: str) -> str:
    """Quote a text as one word for bash, zsh and ksh; invisible characters are escaped byte by byte."""
    if text.isprintable():
        return shlex.quote(text)
    return f"$'{''.join(_escaped(character) for character in text)}'"


def _escaped(character: str) -> str:
    if character in ("'", "\\"):
        return f"\\{character}"
    if character.isprintable():
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode())
