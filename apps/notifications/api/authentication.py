"""Authenticates the user, and authorizes access to the user's own data only.

`authenticate` is a FastAPI dependency that returns the id of the current user, or raises `Problem` (401). The default
trusts a header. Use it for a demo, or behind a gateway that sets the header and is the only client of the service.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from fastapi import Depends, Security
from fastapi.security import APIKeyHeader

from apps.notifications.api.limits import MAX_ID_LENGTH, UserId
from apps.notifications.api.problems import Problem

Authenticate = Callable[..., Any]
"""A FastAPI dependency: it may be async, and depend on the request, a cookie or a header."""

_header = APIKeyHeader(
    name="X-User-Id", auto_error=False, description="Trusted without a check: set it in your gateway."
)


def trust_header(user: str | None = Security(_header)) -> int:
    """The user that `X-User-Id` names. Raises Problem if it is missing or invalid."""
    if user is None or not (user.isascii() and user.isdecimal() and len(user) <= MAX_ID_LENGTH):
        raise Problem(
            HTTPStatus.UNAUTHORIZED, "unauthenticated", "not authenticated: send the user's id in the header X-User-Id"
        )
    return int(user)


def only_own(authenticate: Authenticate) -> Callable[..., None]:
    """A dependency for paths with a `user_id`: it must be that of the current user."""

    def check(user_id: UserId, caller: int = Depends(authenticate)) -> None:
        if caller != user_id:
            raise Problem(HTTPStatus.FORBIDDEN, "forbidden", "this belongs to another user")

    return check
