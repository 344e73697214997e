"""The message of a Celery task: a worker drops what it cannot decode, so every payload becomes valid UTF-8."""

import json
from typing import Any

import pytest

from pillarbox.integrations.celery import CeleryAddress
from pillarbox.integrations.celery.task_message import task_body
from pillarbox.testing.conformance.transports import outgoing

TEXT = '{"name": "é"}'


def message(body: bytes) -> bytes:
    return task_body(outgoing("e-1", CeleryAddress(), body=body, content_type="application/json"))


def argument(body: bytes) -> Any:
    """What the task gets, as a worker decodes it."""
    [[decoded], _, _] = json.loads(message(body).decode("utf-8"))
    return decoded


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "utf-32-be"])
def test_json_in_any_encoding_is_read_by_a_worker(encoding: str) -> None:
    assert argument(TEXT.encode(encoding)) == {"name": "é"}


def test_json_in_utf_8_is_copied_byte_for_byte() -> None:
    body = b'{ "price": 1.10, "id": 12345678901234567890 }'
    assert body in message(body)


@pytest.mark.parametrize("body", [b'{"a": "\xff"}', b'"\xed\xa0\x80"', b'{"a": NaN}', b"{", b""])
def test_what_no_worker_can_decode_arrives_as_bytes(body: bytes) -> None:
    assert argument(body)["__type__"] == "base64"
