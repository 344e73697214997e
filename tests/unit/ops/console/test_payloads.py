from datetime import UTC, datetime

import pytest

from pillarbox.admin.listing import EventDetail
from pillarbox.admin.states import EventState
from pillarbox.ops.console.masking import HIDDEN, Masks
from pillarbox.ops.console.payloads import SHOWN, Form, download, hex_dump, show

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
NO_MASKS, EMAIL = Masks(), Masks(["$.email"])


def carrying(payload: bytes, content_type: str = "application/json") -> EventDetail:
    return EventDetail(
        1, "e", "", EventState.READY, "t", None, None, None, payload, content_type, "{}", 1, None, None, None,
        NOON, NOON, None, None, 0, 0, None, None, None, None, None, None, None, None,
    )  # fmt: skip


def shown_text(
    payload: bytes, form: Form | None = None, masks: Masks = NO_MASKS, kind: str = "application/json"
) -> str:
    return "".join(piece.text for piece in show(carrying(payload, kind), form, masks).pieces)


@pytest.mark.parametrize(
    ("payload", "kind", "form"),
    [
        (b'{"a":1}', "application/json", "json"),
        (b"null", "application/json", "json"),
        (b"{", "application/json", "raw"),
        (b"hello", "text/plain", "raw"),
        (b"\xff\x00", "application/octet-stream", "hex"),
    ],
)
def test_the_form_that_fits_best_is_shown_first(payload: bytes, kind: str, form: str) -> None:
    assert show(carrying(payload, kind), None, NO_MASKS).form == form


def test_the_same_payload_in_three_forms() -> None:
    payload = b'{"n": 12345678901234567890}'
    assert shown_text(payload) == '{\n  "n": 12345678901234567890\n}'
    assert shown_text(payload, "raw") == payload.decode()
    assert shown_text(payload, "hex").startswith("00000000  7b 22 6e 22 3a 20 31 32")


def test_a_large_payload_is_cut_and_says_by_how_much() -> None:
    shown = show(carrying(b'"' + b"x" * (SHOWN + 98) + b'"'), None, NO_MASKS)
    assert shown.cut == 100
    assert len(shown.pieces[0].text) == SHOWN
    assert (shown.form, shown.too_large) == ("raw", True)


def test_an_empty_payload_is_said_to_be_empty() -> None:
    assert show(carrying(b"", "text/plain"), None, NO_MASKS).withheld == "The payload is empty."


@pytest.mark.parametrize("form", ["json", "raw", "hex"])
def test_no_form_shows_what_is_masked(form: Form) -> None:
    payload = b'{"email":"ada@example.com"}'
    shown = shown_text(payload, form, EMAIL)
    assert "ada" not in shown
    assert payload.hex(" ")[30:45] not in shown
    assert download(carrying(payload), EMAIL) == f'{{\n  "email": "{HIDDEN}"\n}}'.encode()


@pytest.mark.parametrize(
    "detail", [carrying(b"email=ada@example.com", "text/plain"), carrying(b'{"email":"ada@example.com"')]
)
def test_content_that_rules_cannot_mask_is_not_shown(detail: EventDetail) -> None:
    for form in (None, "json", "raw", "hex"):
        shown = show(detail, form, EMAIL)
        assert (shown.pieces, bool(shown.withheld)) == ((), True)
    assert download(detail, EMAIL) is None


def test_a_hex_dump_has_offset_bytes_and_text() -> None:
    assert hex_dump(bytes(range(30, 50))) == (
        "00000000  1e 1f 20 21 22 23 24 25  26 27 28 29 2a 2b 2c 2d  .. !\"#$%&'()*+,-\n"
        "00000010  2e 2f 30 31                                       ./01"
    )
