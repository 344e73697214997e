"""What a page shows, as a command that a shell understands as it is meant: whatever an id or a filter has in it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping


def command(verb: str, event_id: str | None = None, options: Mapping[str, object] | None = None) -> str:
    """`pillarbox VERB --name value … id`."""
    told = [f"--{name} {quoted(str(value))}" for name, value in (options or {}).items()]
    if event_id is not None:
        told += [f"-- {quoted(event_id)}" if event_id.startswith("-") else quoted(event_id)]
    return " ".join(["pillarbox", verb, *told])


def quoted(text: str) -> str:
    """One word for a shell; what people cannot see is written out, byte by byte, as bash, zsh and ksh read it."""
    if text.isprintable():
        return shlex.quote(text)
    return f"$'{''.join(_shown(letter) for letter in text)}'"


def _shown(letter: str) -> str:
    if letter in ("'", "\\"):
        return f"\\{letter}"
    if letter.isprintable():
        return letter
    return "".join(f"\\x{byte:02x}" for byte in letter.encode())
