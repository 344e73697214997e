"""What HTTP pages for scripts answer with."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse

from pillarbox.core.text import safe_json


class SafeJSONResponse(JSONResponse):
    """JSON of which no character does anything to the terminal that somebody reads it on."""

    def render(self, content: Any) -> bytes:
        return safe_json(content).encode()
