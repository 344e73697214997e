"""What every error of the API has in common."""

from __future__ import annotations

from typing import Any

import httpx


def problem(answer: httpx.Response, status: int, kind: str) -> dict[str, Any]:
    """The problem that this answer is; fails if it is none, or another."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = answer.json()
    assert body["status"] == status
    assert body["type"] == f"urn:notifications:problem:{kind}"
    assert body["instance"] == answer.request.url.path
    assert {"title", "detail"} <= body.keys()
    return body
