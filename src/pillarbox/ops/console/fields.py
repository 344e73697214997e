"""Validation of the fields of a request, in its query or its body.

Invariants: text that no store can hold is rejected; an unknown name is rejected, because a filter without it would
match more; true and false are parsed in one way.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import cast

from pillarbox.core.errors import ConfigurationError
from pillarbox.settings import Flag

TOKEN = "token"  # noqa: S105  # the name of a field
"""The field with the CSRF token of a form."""
_CARRIED = "payload"
"""Becomes bytes, which every store accepts."""
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def check_texts(fields: Mapping[str, object]) -> None:
    """Raises ConfigurationError for a text with U+0000 or a lone surrogate."""
    for name, value in fields.items():
        for text in (name, *(_texts(value) if name != _CARRIED else ())):
            if found := _UNSTORABLE.search(text):
                character = f"U+{ord(found[0]):04X} at position {found.start()}"
                raise ConfigurationError(f"{name!a} has the character {character}, which no store can hold")


def check_names(fields: Collection[str], known: Collection[str]) -> None:
    """Raises ConfigurationError for an unknown field."""
    unknown = [name for name in fields if name not in known]
    if unknown:
        fields_known = f"the fields are {', '.join(known)}" if known else "there are no fields"
        raise ConfigurationError(f"unknown field {unknown[0]!r}: {fields_known}")


def texts_of(fields: Mapping[str, object], names: Collection[str]) -> dict[str, str]:
    """Return the given fields as text, also 0 and false: a filter without them would match more."""
    given = {name: str(fields[name]) for name in names if fields.get(name) is not None}
    return {name: text for name, text in given.items() if text.strip()}


def is_yes(fields: Mapping[str, object], name: str) -> bool:
    """Whether a flag is given and true. Raises ConfigurationError if it is neither true nor false."""
    if name not in fields:
        return False
    try:
        return bool(Flag().read(Flag().parse(str(fields[name]))))
    except ValueError:
        raise ConfigurationError(f"{name} {fields[name]!r} is neither true nor false") from None


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for one in cast(list[object], value):
                yield from _texts(one)
        case dict():
            for name, one in cast(dict[str, object], value).items():
                yield name
                yield from _texts(one)
        case _:
            pass
