"""Edit and retry: what a person makes of a dead letter's content passes the checks of a record before it goes out.

`people.amend` takes what comes out of here: it checks nothing itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pillarbox.admin.dead_letters import Amendment
from pillarbox.admin.listing import EventDetail
from pillarbox.core.errors import RecordError
from pillarbox.core.event import Event
from pillarbox.core.text import is_json, parse_json
from pillarbox.record.encoding import encode
from pillarbox.record.rows import row_of


def amendment(
    letter: EventDetail,
    *,
    payload: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    removed: Iterable[str] = (),
    max_payload: int,
) -> Amendment:
    """What a dead letter becomes with this payload, with these headers on top of its own and without the removed ones.

    None leaves the payload as it is. Raises RecordError, naming the field, for what could not be recorded, and for a
    header that is to be removed and is not there.
    """
    if unknown := [name for name in removed if name not in letter.headers]:
        raise RecordError(f"the letter has no header {unknown[0]!r} that could be removed", field="headers")
    left = {name: value for name, value in letter.headers.items() if name not in set(removed)}
    # Untouched headers stay as they are stored, whatever plain SQL put there.
    wanted = {**left, **(headers or {})} if headers or removed else None
    change = Amendment.of(bytes(letter.payload), letter.headers_json, payload=payload, headers=wanted)
    if payload is not None and is_json(letter.content_type):
        compact(payload)  # which is not kept: the bytes stay as they were given
    checked = change.headers if headers or removed else {}
    event = Event(letter.event_type, change.payload, content_type=letter.content_type, headers=checked)
    row_of(event, registry=None, max_payload=max_payload)
    return change


class Draft(NamedTuple):
    """A payload as a person edits it."""

    shown: bytes
    indented: bool

    def saved(self, text: bytes) -> bytes | None:
        """The payload that this text stands for; None if nothing was edited. Raises RecordError."""
        if text == self.shown:
            return None
        return compact(text) if self.indented else text


def drafted(letter: EventDetail) -> Draft:
    """What a letter carries, to be edited by hand."""
    payload = bytes(letter.payload)
    return Draft(*legible(payload)) if is_json(letter.content_type) else Draft(payload, indented=False)


def legible(payload: bytes) -> tuple[bytes, bool]:
    """A payload to be edited by hand, indented where `compact` gives the same bytes again, and whether it is."""
    try:
        decoded = _decoded(payload)
        if compact(payload) == payload:
            return json.dumps(decoded, ensure_ascii=False, indent=2).encode() + b"\n", True
    except RecordError:
        pass
    return payload, False


def compact(payload: bytes) -> bytes:
    """JSON as `record` writes it. Raises RecordError."""
    return encode(_decoded(payload))


def _decoded(payload: bytes) -> Any:
    try:
        return parse_json(payload.decode())
    except ValueError as error:
        raise RecordError(
            f"payload is not JSON: {error}; correct it, because its content type says JSON", field="payload"
        ) from None
