"""What a request carries by name, in its query or its body, before anybody makes sense of it.

What must stay true: text that no store can hold gets no further than this; a name that means nothing here is refused,
because a filter without it would take in more; yes and no are read in one way.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import cast

from pillarbox.core.errors import ConfigurationError
from pillarbox.settings import Flag

TOKEN = "token"  # noqa: S105  # the name of a field
"""The field of every form that proves that it is one of ours."""
_CARRIED = "payload"
"""Becomes bytes, which stores take as they are."""
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def check_texts(fields: Mapping[str, object]) -> None:
    """Raises ConfigurationError for a text with U+0000 or half a character in it."""
    for name, value in fields.items():
        for text in (name, *(_texts(value) if name != _CARRIED else ())):
            if found := _UNSTORABLE.search(text):
                character = f"U+{ord(found[0]):04X} at position {found.start()}"
                raise ConfigurationError(f"{name!a} has the character {character}: no store can hold it")


def check_names(fields: Collection[str], known: Collection[str]) -> None:
    """Raises ConfigurationError for a field that is not known."""
    unknown = [name for name in fields if name not in known]
    if unknown:
        there_are = f"there are {', '.join(known)}" if known else "there is none"
        raise ConfigurationError(f"there is no field {unknown[0]!r} here: {there_are}")


def texts_of(fields: Mapping[str, object], names: Collection[str]) -> dict[str, str]:
    """What is said of these, as text. A zero or a no is said, too: a filter without it would take in more."""
    told = {name: str(fields[name]) for name in names if fields.get(name) is not None}
    return {name: text for name, text in told.items() if text.strip()}


def is_yes(fields: Mapping[str, object], name: str) -> bool:
    """Whether it is there and says yes. Raises ConfigurationError for what is neither yes nor no."""
    if name not in fields:
        return False
    try:
        return bool(Flag().read(Flag().parse(str(fields[name]))))
    except ValueError:
        raise ConfigurationError(f"{name} {fields[name]!r} is neither yes nor no: write true or false") from None


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
