"""An endpoint of the API: its route and its OpenAPI description come from one definition."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pillarbox.core.errors import ConfigurationError
from pillarbox.ops.console.access import Role
from pillarbox.ops.console.fields import TOKEN, check_names
from pillarbox.ops.console.request import ConsoleRequest
from pillarbox.ops.console.timeouts import TIMEOUT

PREFIX = "/api/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiEndpoint:
    """`fields` maps query parameters of a GET, or members of a POST body, to their descriptions."""

    path: str
    summary: str
    answer: Callable[[ConsoleRequest], Awaitable[dict[str, Any]]]
    returns: type[Any]
    """The type of the response, a TypedDict."""
    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    posts: bool = False
    needs: Role = Role.VIEWER
    timeout: float = TIMEOUT
    """Seconds that a GET may take."""

    @property
    def route(self) -> str:
        return PREFIX + self.path

    def check(self, request: ConsoleRequest) -> None:
        """Raises ConfigurationError for a field that this endpoint does not have."""
        if self.posts and request.http.query_params:
            raise ConfigurationError("a POST has no query parameters: put the fields into the body")
        check_names([*request.http.query_params, *(name for name in request.form if name != TOKEN)], self.fields)
