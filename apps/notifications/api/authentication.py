"""Who asks, and whether it concerns them: a user sees what is theirs, and nothing else.

`authenticate` is a FastAPI dependency that returns the id of the user who asks, or raises `Problem` (401). The default
believes what a header says. That is right behind a gateway which sets the header itself and lets nobody else reach the
service, right for a demo, and wrong anywhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from fastapi import Depends, Security
from fastapi.security import APIKeyHeader

from apps.notifications.api.limits import LONGEST_ID, UserId
from apps.notifications.api.problems import Problem

Authenticate = Callable[..., Any]
"""A FastAPI dependency: it may be async, and ask for the request, a cookie, a header."""

_header = APIKeyHeader(name="X-User-Id", auto_error=False, description="Trusted as it is: set it in your gateway.")


def trust_header(user: str | None = Security(_header)) -> int:
    """The user that `X-User-Id` names. Raises Problem where it names none."""
    if user is None or not (user.isascii() and user.isdecimal() and len(user) <= LONGEST_ID):
        raise Problem(HTTPStatus.UNAUTHORIZED, "unauthenticated", "say who you are: X-User-Id is a number")
    return int(user)


def only_own(authenticate: Authenticate) -> Callable[..., None]:
    """A dependency for paths with a `user_id`: it must be that of the user who asks."""

    def check(user_id: UserId, caller: int = Depends(authenticate)) -> None:
        if caller != user_id:
            raise Problem(HTTPStatus.FORBIDDEN, "forbidden", "this belongs to somebody else")

    return check
