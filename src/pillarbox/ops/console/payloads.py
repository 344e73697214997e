"""Payloads as a user may see them: as JSON, raw or hex, limited in size, masked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pillarbox.admin.listing import EventDetail
from pillarbox.core.payload import is_json
from pillarbox.ops import exports
from pillarbox.ops.console import json_text
from pillarbox.ops.console.json_text import Piece
from pillarbox.ops.console.masking import Masks

Form = Literal["json", "raw", "hex"]
FORMS: Sequence[Form] = ("json", "raw", "hex")

SHOWN = 128 * 1024
"""Bytes of a payload that a page shows; a download has all of them."""
SHOWN_HEX = 4 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A payload on a page."""

    size: int
    content_type: str
    form: Form
    pieces: Sequence[Piece] = ()
    cut: int = 0
    """Bytes that are left out."""
    too_large: bool = False
    """It is shown raw, because it is too large to format as JSON."""
    withheld: str = ""
    """Why the payload is not shown."""
    masked: bool = False


def show(detail: EventDetail, form: Form | None, masks: Masks) -> Shown:
    """Show a payload in the requested form; None selects one."""
    raw = bytes(detail.payload)
    document = _document(raw, detail.content_type)
    form = form or ("json" if document is not None else "raw" if _is_text(raw) else "hex")
    shown = Shown(size=len(raw), content_type=detail.content_type, form=form)
    if not raw:
        return replace(shown, withheld="The payload is empty.")
    if masks.payloads:
        return _masked(shown, document, masks)
    match form:
        case "json" if document is None:
            return replace(shown, withheld="The payload is not JSON: select raw or hex.")
        case "json" if len(raw) <= SHOWN:
            return replace(shown, pieces=list(json_text.pieces(document)))
        case "hex":
            return replace(shown, pieces=[Piece("", hex_dump(raw[:SHOWN_HEX]))], cut=max(0, len(raw) - SHOWN_HEX))
        case _:
            pieces = [Piece("", _readable(raw[:SHOWN]))]
            return replace(shown, form="raw", pieces=pieces, cut=max(0, len(raw) - SHOWN), too_large=form == "json")


def download(detail: EventDetail, masks: Masks) -> bytes | None:
    """Return the payload as a file; None if it cannot be masked."""
    raw = bytes(detail.payload)
    if not masks.payloads:
        return raw
    document = _document(raw, detail.content_type)
    return None if document is None else json_text.text(masks.payload(document)).encode()


def content(detail: EventDetail, masks: Masks) -> dict[str, Any]:
    """Return payload and headers for the API, without a payload that cannot be masked."""
    shown = {"content_type": detail.content_type, "headers": masks.headers(detail.headers)}
    raw = download(detail, masks)
    carried = {} if raw is None else exports.carried(raw, detail.content_type)
    if masks.payloads and "payload" in carried:
        # These bytes are not the original ones.
        carried.pop("payload_base64", None)
    return shown | carried


def hides(detail: EventDetail, masks: Masks) -> bool:
    """Whether rules mask a part of this event, or cannot be applied to it."""
    if masks.headers(detail.headers) != dict(detail.headers):
        return True
    if not masks.payloads:
        return False
    document = _document(bytes(detail.payload), detail.content_type)
    return document is None or masks.payload(document) != document


def hex_dump(raw: bytes) -> str:
    lines: list[str] = []
    for start in range(0, len(raw), 16):
        row = raw[start : start + 16]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f"{start:08x}  {row[:8].hex(' '):<23}  {row[8:].hex(' '):<23}  {text}")
    return "\n".join(lines)


def _masked(shown: Shown, document: json_text.Node | None, masks: Masks) -> Shown:
    if document is None:
        return replace(shown, withheld="The payload is not JSON, so that it cannot be masked.", masked=True)
    if shown.form == "hex":
        return replace(shown, withheld="Bytes cannot be masked: select JSON.", masked=True)
    if shown.size > SHOWN:
        return replace(shown, withheld="The payload is too large for this page: download it.", masked=True)
    return replace(shown, pieces=list(json_text.pieces(masks.payload(document))), masked=True)


def _document(raw: bytes, content_type: str) -> json_text.Node | None:
    if not is_json(content_type):
        return None
    try:
        # `null` is a document; None stands for a payload that is not JSON.
        return json_text.parse(raw) if raw.strip() != b"null" else json_text.Digits("null")
    except ValueError:
        return None


def _is_text(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in raw


def _readable(raw: bytes) -> str:
    return raw.decode(errors="replace")
