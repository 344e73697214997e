"""JSON as it was written: numbers keep every digit, members their order and duplicates.

Users compare a payload with another system: 12345678901234567890 must not become 12345678901234567000.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from pillarbox.core.payload import refuse_constant


class Digits(str):
    """A number as it was written."""


@dataclass(frozen=True, slots=True)
class Members:
    """An object's members in order."""

    pairs: Sequence[tuple[str, Node]]


Node: TypeAlias = "Members | list[Node] | Digits | str | bool | None"

_HALF = re.compile("[\ud800-\udfff]")

DEEPEST = 100
"""Maximum number of nested levels."""


class Piece(NamedTuple):
    """A piece of formatted JSON. kind: name, text, number, word, or '' for punctuation."""

    kind: str
    text: str


def parse(raw: bytes) -> Node:
    """Parse JSON. Raises ValueError, also for a document that is nested too deeply."""
    try:
        node: Node = json.loads(
            raw.decode("utf-8-sig"),
            object_pairs_hook=Members,
            parse_int=Digits,
            parse_float=Digits,
            parse_constant=refuse_constant,
        )
        _check(node, DEEPEST)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return node


def pieces(node: Node, indent: str = "") -> Iterator[Piece]:
    """Yield the document, indented."""
    match node:
        case Members(pairs) if pairs:
            yield from _block("{", "}", (_member(name, value, indent) for name, value in pairs), indent)
        case list() if node:
            yield from _block("[", "]", (pieces(value, f"{indent}  ") for value in node), indent)
        case _:
            yield _scalar(node)


def text(node: Node) -> str:
    """Return the document as indented text."""
    return "".join(piece.text for piece in pieces(node))


def _member(name: str, value: Node, indent: str) -> Iterator[Piece]:
    yield Piece("name", _quoted(name))
    yield Piece("", ": ")
    yield from pieces(value, f"{indent}  ")


def _block(begin: str, end: str, parts: Iterator[Iterator[Piece]], indent: str) -> Iterator[Piece]:
    yield Piece("", begin)
    for at, part in enumerate(parts):
        yield Piece("", f"{',' if at else ''}\n{indent}  ")
        yield from part
    yield Piece("", f"\n{indent}{end}")


def _scalar(node: Node) -> Piece:
    match node:
        case Digits():
            return Piece("number", str(node))
        case str():
            return Piece("text", _quoted(node))
        case True | False | None:
            return Piece("word", json.dumps(node))
        case Members():
            return Piece("", "{}")
        case _:
            return Piece("", "[]")


def _quoted(value: str) -> str:
    # UTF-8 cannot encode a lone surrogate, so that it is escaped.
    return _HALF.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))


def _check(node: Node, left: int) -> None:
    if left == 0:
        raise ValueError("it is nested too deeply")
    if isinstance(node, Members):
        for _, value in node.pairs:
            _check(value, left - 1)
    elif isinstance(node, list):
        for value in node:
            _check(value, left - 1)
