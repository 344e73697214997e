"""Asserts the format of an error."""

from __future__ import annotations

from typing import Any

import httpx


def problem(answer: httpx.Response, status: int, kind: str) -> dict[str, Any]:
    """The body of a problem; fails if the response is not this problem."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = answer.json()
    assert body["status"] == status
    assert body["type"] == f"urn:notifications:problem:{kind}"
    assert body["instance"] == answer.request.url.path
    assert {"title", "detail"} <= body.keys()
    return body
