"""The users of the console's tests, and their login."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.ops.console import Role, User, passwords
from pillarbox.ops.console.passwords import hashed
from pillarbox.ops.console.users import UserEntry

if TYPE_CHECKING:
    import httpx

    from tests.console.conftest import Visitor

# Tests log in hundreds of times: the lowest cost of a password hash that is accepted.
passwords.LOG_COST = 10

PASSWORD = "correct horse battery"
HASH = hashed(PASSWORD)


def entry(name: str, role: Role, *, payloads: bool = False, known: str = HASH) -> UserEntry:
    return UserEntry(user=User(name=name, role=role, payloads=payloads), hash=known)


async def log_in(visitor: Visitor, name: str, password: str = PASSWORD, wanted: str = "/") -> httpx.Response:
    return await visitor.client.post("/login", data={"name": name, "password": password, "next": wanted})
