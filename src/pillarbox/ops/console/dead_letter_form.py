"""The form to edit a dead letter.

Invariant: an unchanged form changes nothing. Content that a browser would not return unchanged, such as bytes, control
characters or mixed line ends, cannot be edited.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import unified_diff
from typing import NamedTuple, Self

from pillarbox.admin.dead_letters import AMENDED, DeadLetterEdit
from pillarbox.admin.listing import EventDetail
from pillarbox.core.errors import RecordError
from pillarbox.core.text import escape_json
from pillarbox.ops.console import formatting
from pillarbox.ops.console.payloads import SHOWN
from pillarbox.ops.dead_letter_edit import amendment, drafted

_AROUND = 2
"""Lines that are shown before and after a change."""
_KINDS = {" ": "same", "+": "added", "-": "removed", "@": "gap"}


class DeadLetterForm(NamedTuple):
    """The content of the fields, with line ends as browsers show them; None: the field cannot be edited."""

    payload: str | None
    headers: str | None
    """One line per header: name, colon, value."""

    @classmethod
    def of(cls, dead_letter: EventDetail) -> Self:
        """Return the form with the stored content."""
        return cls(_payload_text(dead_letter), _headers_text(dead_letter))

    def filled(self, posted: Mapping[str, object]) -> Self:
        """Return the form with the posted content."""
        typed = {name: str(value).replace("\r\n", "\n") for name, value in posted.items()}
        return self._replace(
            **{name: typed[name] for name, text in self._asdict().items() if text is not None and name in typed}
        )

    def amendment(self, dead_letter: EventDetail, *, max_payload: int) -> DeadLetterEdit:
        """Return the change that the form describes. Raises RecordError with the field."""
        shown, payload, headers = self.of(dead_letter), None, None
        if self.payload is not None and self.payload != shown.payload:
            payload = _payload_of(self.payload, dead_letter)
        if self.headers is not None and self.headers != shown.headers:
            headers = _headers_of(self.headers)
        removed = [] if headers is None else [name for name in _own_headers(dead_letter) if name not in headers]
        return amendment(dead_letter, payload=payload, headers=headers, removed=removed, max_payload=max_payload)


class DiffLine(NamedTuple):
    """A line of a diff. kind: same, added, removed, or gap for unchanged lines that are left out."""

    kind: str
    text: str


def diff_lines(before: str, after: str) -> Iterator[DiffLine]:
    """Yield the differences of two texts, with a few lines of context."""
    if before.endswith("\n") and after.endswith("\n"):
        before, after = before[:-1], after[:-1]
    lines = unified_diff(before.split("\n"), after.split("\n"), n=_AROUND, lineterm="")
    for number, line in enumerate(lines):
        # The first two lines name files, the third begins the first hunk.
        if number > 2:
            yield DiffLine(_KINDS[line[0]], line[1:])


def _payload_text(dead_letter: EventDetail) -> str | None:
    shown, indented = drafted(dead_letter)
    if len(shown) > SHOWN:
        return None
    try:
        text = shown.decode()
    except UnicodeDecodeError:
        return None
    if indented:
        return escape_json(text)
    lines = text.replace("\r\n", "\n")
    return lines if formatting.clean(lines) == lines and _with_ends(lines, like=text) == text else None


def _payload_of(typed: str, dead_letter: EventDetail) -> bytes | None:
    draft = drafted(dead_letter)
    return draft.saved(_with_ends(typed, like=draft.shown.decode()).encode(errors="replace"))


def _with_ends(lines: str, *, like: str) -> str:
    return lines.replace("\n", "\r\n") if "\r\n" in like else lines


def _headers_text(dead_letter: EventDetail) -> str | None:
    own = _own_headers(dead_letter)
    lines = "".join(f"{name}: {value}\n" for name, value in own.items())
    try:
        return lines if formatting.clean(lines) == lines and _headers_of(lines) == own else None
    except RecordError:
        return None


def _headers_of(typed: str) -> dict[str, str]:
    headers: dict[str, str] = {}
    for number, line in enumerate(typed.split("\n"), start=1):
        name, colon, value = (part.strip() for part in line.partition(":"))
        if not (name or colon):
            continue
        if not (name and colon):
            raise RecordError(f"headers, line {number}: write a name, a colon and a value", field="headers")
        if name in headers:
            raise RecordError(f"headers, line {number}: {name!r} occurs twice", field="headers")
        headers[name] = value
    return headers


def _own_headers(dead_letter: EventDetail) -> dict[str, str]:
    """Return the headers without `amended`, which is written again."""
    return {name: value for name, value in dead_letter.headers.items() if name != AMENDED}
