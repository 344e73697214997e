"""The message of a Celery task, version 2 of its protocol: what a worker reads from RabbitMQ.

The task gets one positional argument: the payload. JSON is copied, in UTF-8, because a worker drops a task that it
cannot decode. Anything else arrives as bytes, in the form in which Celery's own JSON serializer writes them. The id of
the task is the event id.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping

from pillarbox.core.payload import is_json, parse_json
from pillarbox.core.transport import Outgoing

CONTENT_TYPE = "application/json"
_BEFORE = b"[["
_AFTER = b'], {}, {"callbacks": null, "errbacks": null, "chain": null, "chord": null}]'
_NOT_SHOWN = "(an event)"
"""What the worker's log and monitors show as the arguments: payloads do not belong there."""

_RESERVED = frozenset(
    {
        *("lang", "task", "id", "root_id", "parent_id", "group", "group_index", "shadow", "eta", "expires", "retries"),
        *("timelimit", "argsrepr", "kwargsrepr", "origin", "ignore_result", "replaced_task_nesting", "stamps"),
        *("stamped_headers", "args", "kwargs", "callbacks", "errbacks", "chain", "chord", "reply_to", "properties"),
        *("correlation_id", "delivery_info", "headers", "hostname", "is_eager", "called_directly", "compression"),
        *("logfile", "loglevel", "taskset", "utc", "update", "clear", "get"),
    }
)
"""Headers that a worker reads as its own. An event's header of such a name is left out."""


def task_body(one: Outgoing) -> bytes:
    """The body: the arguments, the keyword arguments, and what Celery's canvas would add."""
    return b"".join((_BEFORE, _argument(one), _AFTER))


def task_headers(one: Outgoing, task: str) -> Mapping[str, str]:
    """The headers of the event, which a task finds in `self.request.headers`, and those of the task."""
    event_id = one.message.event_id
    return {
        **{name: value for name, value in one.headers.items() if name not in _RESERVED},
        "contentType": one.content_type,
        "lang": "py",
        "task": task,
        "id": event_id,
        "root_id": event_id,
        "argsrepr": _NOT_SHOWN,
        "kwargsrepr": "{}",
        "origin": "pillarbox",
    }


def _argument(one: Outgoing) -> bytes:
    if is_json(one.content_type):
        try:
            parse_json(one.body)
            # JSON may be UTF-16 or begin with a byte order mark. UTF-8 stays byte for byte.
            return one.body.decode(json.detect_encoding(one.body)).encode()
        except ValueError:
            pass  # a producer in plain SQL may have recorded anything
    return json.dumps({"__type__": "base64", "__value__": b64encode(one.body).decode()}).encode()
