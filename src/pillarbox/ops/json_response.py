"""JSON responses of HTTP endpoints."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse

from pillarbox.core.text import safe_json


class SafeJSONResponse(JSONResponse):
    """JSON with control characters escaped, safe to print on a terminal."""

    def render(self, content: Any) -> bytes:
        return safe_json(content).encode()
