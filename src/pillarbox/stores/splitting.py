"""Splits an SQL script into its statements: most drivers and migration tools run one statement at a time.

A semicolon ends a statement unless it is inside a string, a quoted name, a comment, a dollar-quoted body or the
`BEGIN … END` of a trigger or routine. Comments before a statement are dropped, those inside it stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(
    r"""
    (?P<comment> --[^\n]* | /\* )
  | (?P<dollar> (?<![\w$]) \$ (?: [^\W\d]\w* )? \$ )
  | (?P<quote> ['"`] )
  | (?P<word> [^\W\d][\w$]* )
  | (?P<end> ; )
    """,
    re.VERBOSE,
)
_COMMENT_MARK = re.compile(r"/\*|\*/")
_ROUTINE = re.compile(
    r"(?i)\s*(?:BEGIN\s+NOT\s+ATOMIC\b|CREATE\s[^('\"`]*?\b(?:TRIGGER|FUNCTION|PROCEDURE)\b)", re.DOTALL
)
_CLOSED_BY_NAME = frozenset({"IF", "LOOP", "WHILE", "REPEAT", "FOR", "CASE"})
"""What follows END where a block has its own kind of end: `END IF`."""


def split_statements(script: str, *, backslashes: bool = False) -> Iterator[str]:
    """Yield the statements of a script, without their semicolons and without the comments before them.

    backslashes: whether a backslash in any string escapes the next character, as in MariaDB. In PostgreSQL it does so
    in strings with the prefix E only.
    """
    start = position = 0
    depth = 0
    empty = True
    previous = ""
    while (found := _TOKEN.search(script, position)) is not None:
        if empty and script[position : found.start()].strip():
            empty, start = False, _first_character(script, position)
        position = found.end()
        match found.lastgroup:
            case "comment":
                if found[0] == "/*":
                    position = _end_of_comment(script, position)
                if empty:
                    start = position
                continue
            case "dollar":
                position = _after(script, found[0], position)
            case "quote":
                escaped = backslashes or previous.upper() == "E"
                position = _end_of_quote(script, found[0], position, backslashes=escaped and found[0] == "'")
            case "end":
                if depth == 0:
                    if not empty:
                        yield script[start : found.start()].strip()
                    empty, start, previous = True, position, ""
                    continue
            case _:
                depth = _depth(depth, previous.upper(), found[0].upper(), script, start if not empty else found.start())
        if empty:
            empty, start = False, found.start()
        previous = found[0] if found.lastgroup == "word" else ""
    if not empty or script[position:].strip():
        yield script[start:].strip()


def _depth(depth: int, previous: str, word: str, script: str, start: int) -> int:
    """How many blocks are open after this word."""
    if word == "END":
        return max(depth - 1, 0)
    if word in _CLOSED_BY_NAME and previous == "END":
        # The END of `END CASE` has closed the block; the END of `END IF` has closed none, because IF opened none.
        return depth if word == "CASE" else depth + 1
    if word == "CASE" and depth:
        return depth + 1
    if word == "BEGIN" and _ROUTINE.match(script, start):
        return depth + 1
    return depth


def _first_character(script: str, position: int) -> int:
    return position + len(script[position:]) - len(script[position:].lstrip())


def _after(script: str, mark: str, position: int) -> int:
    end = script.find(mark, position)
    return len(script) if end < 0 else end + len(mark)


def _end_of_comment(script: str, position: int) -> int:
    """Where a comment ends that began with `/*`; comments nest, as in PostgreSQL."""
    depth = 1
    while depth and (mark := _COMMENT_MARK.search(script, position)) is not None:
        depth += 1 if mark[0] == "/*" else -1
        position = mark.end()
    return len(script) if depth else position


def _end_of_quote(script: str, quote: str, position: int, *, backslashes: bool) -> int:
    """Where a quoted text ends. A doubled quote, which stands for the quote itself, begins the next quoted text."""
    while position < len(script) and script[position] != quote:
        position += 2 if backslashes and script[position] == "\\" else 1
    return position + 1
