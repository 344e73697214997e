"""Text in output: counts with their nouns, and characters that are unsafe to display."""

from __future__ import annotations

import json
import re


def noun(count: int, one: str, many: str = "") -> str:
    """The noun for a count; `many`: its plural, if it is not formed with an s."""
    return one if count == 1 else many or f"{one}s"


def plural(count: int, one: str, many: str = "", *, limit: int | None = None) -> str:
    """A count and its noun; a count beyond `limit` becomes "more than `limit`"."""
    if limit is not None and count > limit:
        return f"more than {limit:,} {noun(count, one, many)}"
    return f"{count:,} {noun(count, one, many)}"


UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)
_LINE_ENDS = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}


def escaped(text: str, *, keep: str = "") -> str:
    """The text with unsafe characters escaped as `\\x1b` or `\\u202e`, except those in `keep`."""
    return UNSAFE.sub(lambda found: found[0] if found[0] in keep else _written(found[0]), text)


def safe_json(value: object) -> str:
    """JSON on one line without unsafe characters: they are escaped inside strings."""
    return escape_json(json.dumps(value, ensure_ascii=False))


def escape_json(text: str) -> str:
    """Equivalent JSON text without unsafe characters: they are escaped inside strings."""
    return UNSAFE.sub(lambda found: found[0] if found[0] in "\t\n\r" else json.dumps(found[0])[1:-1], text)


def _written(character: str) -> str:
    if character in _LINE_ENDS:
        return _LINE_ENDS[character]
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
