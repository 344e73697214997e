"""Characters that a terminal or a browser would obey instead of showing: whatever comes from outside may have them.

They are C0 and C1 controls with ESC and DEL, line and paragraph separators, marks that turn the direction of writing
around, characters of no width, tags, and halves of characters.
"""

from __future__ import annotations

import json
import re

UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)
_LINE_ENDS = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}


def escaped(text: str, *, keep: str = "") -> str:
    """The text with these characters written out as `\\x1b` or `\\u202e`, except those to keep."""
    return UNSAFE.sub(lambda found: found[0] if found[0] in keep else _written(found[0]), text)


def safe_json(value: object) -> str:
    """JSON on one line, of characters that are safe to show; it says the same as any other JSON of this value."""
    return escape_json(json.dumps(value, ensure_ascii=False))


def escape_json(text: str) -> str:
    """JSON text that says the same without these characters: what it has of them is in strings, or between values."""
    return UNSAFE.sub(lambda found: found[0] if found[0] in "\t\n\r" else json.dumps(found[0])[1:-1], text)


def _written(character: str) -> str:
    if character in _LINE_ENDS:
        return _LINE_ENDS[character]
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
