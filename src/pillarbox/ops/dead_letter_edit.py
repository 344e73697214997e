"""Edit a dead letter before it is retried: the new content is validated like a new event.

`Admin.dead_letters.edit` takes the result and validates nothing itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pillarbox.admin.dead_letters import DeadLetterEdit
from pillarbox.admin.listing import EventDetail
from pillarbox.core.errors import RecordError
from pillarbox.core.event import Event
from pillarbox.core.payload import is_json, parse_json
from pillarbox.record.encoding import encode
from pillarbox.record.rows import row_of


def amendment(
    dead_letter: EventDetail,
    *,
    payload: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    removed: Iterable[str] = (),
    max_payload: int,
) -> DeadLetterEdit:
    """Return the change that sets the payload and these headers, and removes others.

    None keeps the payload. Raises RecordError, with the field, for content that could not be recorded, and for a header
    that is to be removed and does not exist.
    """
    if unknown := [name for name in removed if name not in dead_letter.headers]:
        raise RecordError(f"the dead letter has no header {unknown[0]!r} to remove", field="headers")
    left = {name: value for name, value in dead_letter.headers.items() if name not in set(removed)}
    # Unchanged headers stay as they are stored, even if plain SQL wrote invalid ones.
    wanted = {**left, **(headers or {})} if headers or removed else None
    change = DeadLetterEdit.of(bytes(dead_letter.payload), dead_letter.headers_json, payload=payload, headers=wanted)
    if payload is not None and is_json(dead_letter.content_type):
        compact(payload)  # validates only: the bytes stay as given
    checked = change.headers if headers or removed else dict[str, Any]()
    event = Event(dead_letter.event_type, change.payload, content_type=dead_letter.content_type, headers=checked)
    row_of(event, registry=None, max_payload=max_payload, traced=False)  # validates only: no event is created
    return change


class Draft(NamedTuple):
    """A payload in an editor."""

    shown: bytes
    indented: bool

    def saved(self, text: bytes) -> bytes | None:
        """Return the payload of the saved text; None if it is unchanged. Raises RecordError."""
        if text == self.shown:
            return None
        return compact(text) if self.indented else text


def drafted(dead_letter: EventDetail) -> Draft:
    """Return the payload of a dead letter for an editor."""
    payload = bytes(dead_letter.payload)
    return Draft(*indent(payload)) if is_json(dead_letter.content_type) else Draft(payload, indented=False)


def indent(payload: bytes) -> tuple[bytes, bool]:
    """Return the payload, indented if `compact` restores the same bytes, and whether it is indented."""
    try:
        decoded = _decoded(payload)
        if compact(payload) == payload:
            return json.dumps(decoded, ensure_ascii=False, indent=2).encode() + b"\n", True
    except RecordError:
        pass
    return payload, False


def compact(payload: bytes) -> bytes:
    """Format JSON as `record` does. Raises RecordError."""
    return encode(_decoded(payload))


def _decoded(payload: bytes) -> Any:
    try:
        return parse_json(payload.decode())
    except ValueError as error:
        raise RecordError(
            f"payload is not JSON: {error}; correct it, because the content type is JSON", field="payload"
        ) from None
