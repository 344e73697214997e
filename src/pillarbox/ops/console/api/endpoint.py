"""An endpoint of the API: its route and its OpenAPI description come from one definition."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pillarbox.core.errors import ConfigurationError
from pillarbox.ops.console.access import Role
from pillarbox.ops.console.api.field_schemas import FIELD_SCHEMAS, TEXT, check_value
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
    required: tuple[str, ...] = ()
    schemas: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """JSON schemas of fields that differ from the schema of their name."""
    posts: bool = False
    needs: Role = Role.VIEWER
    timeout: float = TIMEOUT
    """Seconds that a GET may take."""

    @property
    def route(self) -> str:
        return PREFIX + self.path

    def schema_of(self, name: str) -> Mapping[str, Any]:
        """Return the JSON schema of a field."""
        return self.schemas.get(name) or FIELD_SCHEMAS.get(name, TEXT)

    def check(self, request: ConsoleRequest) -> None:
        """Raises ConfigurationError for an unknown, a missing or an empty field, and for a value of a wrong type."""
        query, body = request.http.query_params, {name: one for name, one in request.form.items() if name != TOKEN}
        if self.posts and query:
            raise ConfigurationError("a POST has no query parameters: put the fields into the body")
        check_names([*query, *body], self.fields)
        for name in self.required:
            if name not in query and name not in body:
                raise ConfigurationError(f"missing field {name!r}: {self.fields[name]}")
        for name, value in body.items():
            check_value(name, value, self.schema_of(name))
        for name, text in query.items():
            # Every value of a query is a text; its parser rejects a text that is no number.
            check_value(name, text, TEXT)
