"""A payload on the far side: JSON as Python values, anything else as the bytes it came as."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from pillarbox.core.errors import PermanentError

Upcast = Callable[[str, int, Any], Any]
"""(event type, schema version, payload) → the payload as the current version has it: `EventTypes.upcast` is one."""


def decoded(
    body: bytes, content_type: str, *, event_id: str, event_type: str, version: int, upcast: Upcast | None = None
) -> Any:
    """The payload of an event, upcast if it is JSON. Raises PermanentError for one that says JSON and is none, and
    whatever the upcaster raises."""
    if not _is_json(content_type):
        return body
    try:
        payload = json.loads(body)
    except (ValueError, RecursionError) as error:
        # The cause is left out: it carries the whole document.
        raise PermanentError(
            f"the payload of {event_id} says {content_type} and does not decode: "
            f"{type(error).__name__}; correct its producer"
        ) from None
    return payload if upcast is None else upcast(event_type, version, payload)


@lru_cache(maxsize=256)
def _is_json(content_type: str) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")
