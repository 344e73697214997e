"""What an endpoint of the API is: the route and its description are made of the same value."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pillarbox.ops.console.access import Role
from pillarbox.ops.console.visiting import Visit

PREFIX = "/api/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """`fields` are parameters of a GET's query, or members of a POST's body, each with what it means."""

    path: str
    summary: str
    answer: Callable[[Visit], Awaitable[dict[str, Any]]]
    fields: Mapping[str, str] = field(default_factory=dict)
    posts: bool = False
    needs: Role = Role.VIEWER

    @property
    def route(self) -> str:
        return PREFIX + self.path
