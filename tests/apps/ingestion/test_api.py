"""`/api/v1/documents` over a real server, on PostgreSQL and on SQLite."""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64encode
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest

from apps.ingestion.api.middleware import MAX_BODY
from tests.apps.ingestion.running import Service, ingestion
from tests.servers.ports import free_port

PATH = "/api/v1/documents"
UPLOAD = {
    "name": "test-document.pdf",
    "contentType": "application/pdf",
    "fileSize": 1024000,
    "metadata": {"description": "Test document for outbox publisher", "category": "testing"},
    "uploadedBy": "test-user",
}
UTC_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def nested(levels: int) -> dict[str, Any]:
    return {"a": nested(levels - 1)} if levels > 1 else {}


def test_an_upload_returns_the_document(service: Service) -> None:
    answer = service.client.post(PATH, json=UPLOAD)
    document = answer.json()
    assert answer.status_code == 201
    assert list(document) == [
        *("id", "name", "contentType", "fileSize", "status", "metadata"),
        *("createdAt", "updatedAt", "createdBy", "updatedBy"),
    ]
    assert {name: document[name] for name in UPLOAD if name != "uploadedBy"} == {
        name: value for name, value in UPLOAD.items() if name != "uploadedBy"
    }
    assert (document["status"], document["createdBy"], document["updatedBy"]) == ("UPLOADED", "test-user", "test-user")
    assert UTC_TIME.fullmatch(document["createdAt"])
    assert document["updatedAt"] == document["createdAt"]
    assert service.client.get(answer.headers["Location"]).json() == document


def test_metadata_is_optional(service: Service) -> None:
    assert service.upload().json()["metadata"] == {}


def test_the_log_line_of_an_upload_has_its_id_and_correlation_id(service: Service) -> None:
    mine = str(uuid4())
    answer = service.upload(**{"X-Correlation-ID": mine})
    assert answer.headers["X-Correlation-ID"] == mine
    assert f"[{mine}] Document uploaded successfully. ID: {answer.json()['id']}" in service.log_text()


@pytest.mark.parametrize("given", ["", "two words", "x" * 201])
def test_an_invalid_correlation_id_is_replaced(service: Service, given: str) -> None:
    made = service.upload(**{"X-Correlation-ID": given}).headers["X-Correlation-ID"]
    assert made != given
    assert re.fullmatch(r"[0-9a-f-]{36}", made)


def test_pages_contain_every_document_in_order(service: Service) -> None:
    uploaded = [service.upload(f"{number}.pdf").json()["id"] for number in range(7)]
    seen: list[dict[str, Any]] = []
    after: dict[str, str] = {}
    while not {document["id"] for document in seen} >= set(uploaded):
        page = service.client.get(PATH, params={"limit": "3"} | after).json()
        seen += page["items"]
        after = {"after": page["next"]}
    assert [document["id"] for document in seen][:7] == uploaded[::-1]
    assert all(one["createdAt"] >= two["createdAt"] for one, two in pairwise(seen))


def test_the_last_page_has_no_next(service: Service) -> None:
    service.upload()
    assert service.client.get(PATH, params={"limit": 200}).json()["next"] is None


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "n" * 256}, "name"),
        ({"name": "a\x00b"}, "name"),
        ({"contentType": "pdf"}, "contentType"),
        ({"fileSize": -1}, "fileSize"),
        ({"fileSize": "12"}, "fileSize"),
        ({"fileSize": 10 * 2**30 + 1}, "fileSize"),
        ({"metadata": None}, "metadata"),
        ({"metadata": ["a"]}, "metadata"),
        ({"metadata": {"deep": nested(32)}}, "metadata"),
        ({"metadata": {"list": [{"a": "x\x00y"}]}}, "metadata"),
        ({"metadata": {"a\x00b": 1}}, "metadata"),
        ({"uploadedBy": " "}, "uploadedBy"),
        ({"owner": "x"}, "owner"),
    ],
)
def test_an_invalid_field_is_named(service: Service, change: dict[str, Any], field: str) -> None:
    answer = service.client.post(PATH, json=UPLOAD | change)
    problem = answer.json()
    assert (answer.status_code, answer.headers["Content-Type"]) == (422, "application/problem+json")
    assert [error["field"] for error in problem["errors"]] == [field]
    assert (problem["title"], problem["status"], problem["instance"]) == ("Unprocessable Entity", 422, PATH)
    assert problem["correlationId"] == answer.headers["X-Correlation-ID"]


ANYTHING = {
    "description": "two\nlines\tand a tab",
    "pages": 12,
    "size": 1.5,
    "large": 2**70,
    "signed": True,
    "author": None,
    "tags": ["a", ["b"], {"c": {}}],
    "nested": {"who": {"name": "Ada", "age": 36}, "": ""},
    "long": "x" * 5000,
} | {f"key {number}": number for number in range(100)}


def test_metadata_is_any_json_object(service: Service) -> None:
    answer = service.client.post(PATH, json=UPLOAD | {"metadata": ANYTHING})
    assert (answer.status_code, answer.json()["metadata"]) == (201, ANYTHING)
    found = service.document(answer.json()["id"])["metadata"]
    assert found == ANYTHING
    assert isinstance(found, dict)
    assert list(found) == list(ANYTHING)
    deepest = service.client.post(PATH, json=UPLOAD | {"metadata": nested(32)})
    assert (deepest.status_code, deepest.json()["metadata"]) == (201, nested(32))


@pytest.mark.parametrize("metadata", ["NaN", "Infinity", "1e999", '"\\ud800"', "[" * 5000 + "]" * 5000, "1" * 5000])
def test_metadata_that_cannot_be_stored_is_a_problem(service: Service, metadata: str) -> None:
    body = json.dumps(UPLOAD)[:-1] + ', "metadata": {"a": ' + metadata + "}}"
    answer = service.client.post(PATH, content=body.encode(), headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)
    assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"name": "\\ud800"}', b"\xff"])
def test_an_invalid_body_is_a_problem(service: Service, body: bytes) -> None:
    answer = service.client.post(PATH, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_a_too_large_body_is_rejected_with_and_without_content_length(service: Service) -> None:
    large = b" " * (MAX_BODY + 1)
    assert service.client.post(PATH, content=large).status_code == 413
    assert service.client.post(PATH, content=iter([large])).status_code == 413


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"{PATH}/00000000-0000-0000-0000-000000000000", 404),
        (f"{PATH}/no-uuid", 422),
        (f"{PATH}?after=nonsense", 422),
        (f"{PATH}?limit=0", 422),
        ("/nowhere", 404),
    ],
)
def test_an_unknown_path_or_invalid_parameter_is_a_problem(service: Service, path: str, status: int) -> None:
    answer = service.client.get(path)
    assert (answer.status_code, answer.json()["status"]) == (status, status)
    assert answer.headers["Content-Type"] == "application/problem+json"


ID = "0193c2f0-6b1e-7c3a-9f57-3c1d2e4f5a6b"
CURSORS = (
    f"0001-01-01T00:00:00+14:00 {ID}",
    f"0001-01-01T00:00:00Z {ID}",
    f"9999-12-31T23:59:59.999999-14:00 {ID}",
    f"9999-12-31T23:59:59.999999Z {ID}",
    f"2026-11-15T12:00:00 {ID}",
    f"2026-11-15T12:00:00+23:59:59.999999 {ID}",
    "2026-11-15T12:00:00Z \0",
)
HOSTILE = (
    *(urlsafe_b64encode(cursor.encode()).decode() for cursor in CURSORS),
    *("", "0", "-1", "9" * 30, "1e9", "\0", "é", "null", "[]", "=" * 100, "A" * 5000, "%ED%A0%80", "\U0001f4ee"),
)


def test_hostile_parameters_cause_no_server_error(service: Service) -> None:
    for value in HOSTILE:
        asked = quote(value, safe="")
        for path in (f"?after={asked}", f"?limit={asked}", f"?{asked}={asked}", f"/{asked}", f"?after={asked}&after=x"):
            assert service.client.get(PATH + path).status_code < 500, path
        if value.isascii() and value.isprintable() and len(value) < 1000:
            for header in ("Idempotency-Key", "X-Correlation-ID", "Content-Type"):
                answer = service.client.post(PATH, json=UPLOAD, headers={header: value})
                assert answer.status_code < 500, (header, value)


def test_one_key_and_one_body_create_one_document(service: Service) -> None:
    key = {"Idempotency-Key": str(uuid4())}
    first, second = (service.client.post(PATH, json=UPLOAD, headers=key) for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.content == second.content


def test_a_key_reused_with_another_body_is_rejected(service: Service) -> None:
    key = {"Idempotency-Key": str(uuid4())}
    service.client.post(PATH, json=UPLOAD, headers=key)
    answer = service.client.post(PATH, json=UPLOAD | {"name": "other.pdf"}, headers=key)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "Idempotency-Key")


def test_concurrent_requests_with_one_key_create_one_document(service: Service) -> None:
    key = {"Idempotency-Key": str(uuid4())}
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: service.client.post(PATH, json=UPLOAD, headers=key), range(16)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.content for answer in answers}) == 1
    documents = [document["id"] for document in service.client.get(PATH, params={"limit": 3}).json()["items"]]
    assert documents.count(answers[0].json()["id"]) == 1


def test_health_reports_the_backlog(service: Service) -> None:
    service.upload()
    health = service.client.get("/health").json()
    assert (health["status"], health["database"], health["relay"]) == ("UP", "UP", "off, not running")
    assert health["backlog"] > 0
    assert health["oldestSeconds"] >= 0
    assert service.client.get("/health/live").json() == {"status": "UP"}


def test_probe_reports_whether_the_service_responds(service: Service, tmp_path: Path) -> None:
    for port, code in ((service.port, 0), (free_port(), 1)):
        assert ingestion("probe", cwd=tmp_path, INGESTION_LISTEN=f"0.0.0.0:{port}").returncode == code
