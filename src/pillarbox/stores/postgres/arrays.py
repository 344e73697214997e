"""Arrays as PostgreSQL writes them: those that a relay sends go as one text each.

asyncpg encodes an array element by element, with several calls for each, and asks the server for every array type but
text[], which costs the server ten milliseconds on each new connection. A statement takes such an array as
`$1::text::bigint[]`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

_NUMBERS = {int, float}
_TEXTS = {str}


def literal(values: Iterable[object]) -> str:
    """An array of numbers, texts, truth values and None (NULL)."""
    elements = list(values)
    kinds = set(map(type, elements))
    if kinds <= _NUMBERS:
        return f"{{{str(elements)[1:-1]}}}"
    if kinds == _TEXTS:
        joined = '","'.join(cast("list[str]", elements))
        # Between quotes only these two mean something; every other quote is one of the separators.
        if "\\" not in joined and joined.count('"') == 2 * (len(elements) - 1):
            return f'{{"{joined}"}}'
    return f"{{{','.join(map(_element, elements))}}}"


def _element(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return str(value)
