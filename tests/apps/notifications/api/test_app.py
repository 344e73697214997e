"""Authentication, errors and the OpenAPI document of all paths."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fastapi import Request
from fastapi.openapi.models import OpenAPI

from apps.notifications.database import open_engine
from apps.notifications.orchestration.recipients import NO_RECIPIENTS
from tests.apps.notifications.api.conftest import Service
from tests.apps.notifications.api.problems import problem
from tests.apps.notifications.delivery.delivery_database import Deliveries
from tests.servers.ports import free_port

OWN = [
    ("GET", "/users/1/preferences"),
    ("PUT", "/users/1/preferences"),
    ("GET", "/users/1/notifications"),
    ("GET", "/users/1/notifications/live"),
    ("POST", "/users/1/notifications/read"),
    ("PUT", "/users/1/notifications/CUSTOMER/1/read"),
    ("GET", "/users/1/notifications/CUSTOMER/1/deliveries"),
]


@pytest.fixture
def deliveries(sqlite_database: str) -> Iterator[Deliveries]:
    with Deliveries.of(sqlite_database) as deliveries:
        deliveries.add_users(1)
        yield deliveries


@pytest.fixture
def document(client: httpx.Client) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/openapi.json").json()
    return found


def send(client: httpx.Client, method: str, path: str) -> httpx.Response:
    return client.request(method, path, json={"time_zone": "UTC"} if method == "PUT" else None)


def test_users_see_only_their_own_data(service: Service) -> None:
    with service.client(2) as other, service.client(None) as unknown:
        for method, path in OWN:
            problem(send(other, method, path), 403, "forbidden")
            problem(send(unknown, method, path), 401, "unauthenticated")


def test_an_invalid_user_header_is_unauthenticated(service: Service) -> None:
    with service.client(None) as client:
        for header in ("", "one", "-1", "1.0", "1 1", "9" * 5000):
            answer = client.get("/users/1/preferences", headers={"X-User-Id": header})
            problem(answer, 401, "unauthenticated")


def test_the_application_can_supply_its_own_authentication(deliveries: Deliveries) -> None:
    def by_cookie(request: Request) -> int:
        return {"secret": 1}.get(request.cookies.get("session", ""), 0)

    service = Service(deliveries.engine, authenticate=by_cookie)
    try:
        with service.client(None) as client:
            assert client.get("/users/1/preferences", headers={"Cookie": "session=secret"}).status_code == 200
            problem(client.get("/users/1/preferences", headers={"X-User-Id": "1"}), 403, "forbidden")
    finally:
        service.stop()


def test_an_unknown_path_or_method_is_a_problem(client: httpx.Client) -> None:
    problem(client.get("/nowhere"), 404, "not-found")
    problem(client.delete("/users/1/preferences"), 405, "method-not-allowed")


@pytest.mark.parametrize("chunked", [False, True])
def test_a_too_large_body_is_rejected(client: httpx.Client, chunked: bool) -> None:
    body = json.dumps({"time_zone": "UTC", "channels": {"x" * 70_000: {}}}).encode()
    content = iter([body[:1000], body[1000:]]) if chunked else body
    answer = client.put("/users/1/preferences", content=content, headers={"content-type": "application/json"})
    problem(answer, 413, "too-large")


def test_an_internal_error_is_logged_and_its_details_are_not_sent(
    deliveries: Deliveries, client: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    with deliveries.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE recipient SET time_zone = 'canary'")
    body = problem(client.get("/users/1/preferences"), 500, "unexpected")
    assert "canary" not in json.dumps(body)
    assert "Traceback" not in json.dumps(body)
    assert "GET /users/1/preferences failed" in caplog.text
    assert "not a time zone" in caplog.text


def test_health_needs_no_authentication(service: Service) -> None:
    with service.client(None) as client:
        assert client.get("/health").json() == {
            "status": "UP",
            "recipients": 0,
            "outboxes": {name: {"backlog": 0, "oldest_seconds": 0.0, "dead": 0} for name in ("events", "deliveries")},
            "reasons": [],
            "warnings": [NO_RECIPIENTS],
        }


def test_an_unavailable_database_is_a_problem_without_the_password() -> None:
    engine = open_engine(f"postgresql://app:canary@127.0.0.1:{free_port()}/shop")
    service = Service(engine)
    try:
        with service.client() as client:
            for path in ("/health", "/users/1/preferences"):
                answer = client.get(path)
                problem(answer, 503, "database")
                assert answer.headers["retry-after"] == "5"
                assert "canary" not in answer.text
    finally:
        service.stop()
        engine.dispose()


def test_the_openapi_document_is_valid_and_its_references_resolve(document: dict[str, Any]) -> None:
    OpenAPI.model_validate(document)
    for reference in references(document):
        found: Any = document
        for step in reference.removeprefix("#/").split("/"):
            found = found[step]


def test_the_openapi_document_has_every_path_and_error(document: dict[str, Any]) -> None:
    operations = {
        (method.upper(), path): operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    assert operations.keys() == {
        ("GET", "/health"),
        ("GET", "/users/{user_id}/preferences"),
        ("PUT", "/users/{user_id}/preferences"),
        ("GET", "/users/{user_id}/notifications"),
        ("GET", "/users/{user_id}/notifications/live"),
        ("POST", "/users/{user_id}/notifications/read"),
        ("PUT", "/users/{user_id}/notifications/{audience}/{notification_id}/read"),
        ("GET", "/users/{user_id}/notifications/{audience}/{notification_id}/deliveries"),
    }
    for (_, path), operation in operations.items():
        errors = {code: answer["content"] for code, answer in operation["responses"].items() if code >= "400"}
        # A backlog over its limit is a state, and the database that cannot be reached a problem.
        health = {"application/json"} if path == "/health" else set()
        assert all({"application/problem+json"} == content.keys() - health for content in errors.values())
        assert operation["summary"]
        assert operation["description"]
        if path != "/health":
            assert {"401", "403", "413", "422", "500", "503"} <= errors.keys()
            assert operation["security"] == [{"APIKeyHeader": []}]


def references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        part = list(part.values())
    if isinstance(part, list):
        for one in part:
            yield from references(one)
