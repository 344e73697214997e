"""The headers of a request: names and values in the characters that HTTP allows, and back.

HTTP fields are ASCII. A character that a value cannot have is percent-encoded by the rule of the CloudEvents HTTP
binding: the space, `"`, `%` and everything that is not printable ASCII. In a name everything but letters, digits and
some punctuation is. Headers of the event have the prefix `pillarbox-`, so that none of them is taken for a header of
the request, such as `Host` or `Authorization`; the trace context and the attributes of a CloudEvent keep their names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import unquote

PREFIX = "pillarbox-"
CLOUDEVENTS_PREFIX = "ce-"
_CLOUDEVENTS_MARK = f"{CLOUDEVENTS_PREFIX}specversion"
_STANDARD = frozenset({"traceparent", "tracestate"})

_UNSAFE_VALUE = re.compile("[^!#$&-~]")
_UNSAFE_NAME = re.compile("[^!#$&'*+.^_`|~0-9A-Za-z-]")


def encoded(text: str) -> str:
    """The value of a header. Raises UnicodeEncodeError for a lone surrogate."""
    return text if _UNSAFE_VALUE.search(text) is None else _UNSAFE_VALUE.sub(_percent, text)


def encoded_name(name: str) -> str:
    """The name of a header. Raises UnicodeEncodeError for a lone surrogate."""
    return name if _UNSAFE_NAME.search(name) is None else _UNSAFE_NAME.sub(_percent, name)


def encoded_id(event_id: str) -> str:
    """The event id in `webhook-id`: without full stops, which separate the parts of the signed content."""
    return encoded(event_id).replace(".", "%2E")


def decoded(text: str) -> str:
    """The text that was encoded as a name, a value or an id."""
    return unquote(text) if "%" in text else text


def _percent(found: re.Match[str]) -> str:
    return "".join([f"%{byte:02X}" for byte in found[0].encode()])


def request_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of an event as headers of a request. Raises UnicodeEncodeError for a lone surrogate."""
    is_cloudevent = _CLOUDEVENTS_MARK in headers
    return {_written_name(name, is_cloudevent): encoded(value) for name, value in headers.items()}


@lru_cache(maxsize=1024)
def _written_name(name: str, is_cloudevent: bool) -> str:
    kept = name in _STANDARD or (is_cloudevent and name.startswith(CLOUDEVENTS_PREFIX))
    return encoded_name(name if kept else f"{PREFIX}{name}")


def event_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of the event in the headers of a request, decoded, under the names in which they arrived.

    Many servers write the names of headers in lower case: `eventType` is then `eventtype`.
    """
    found: dict[str, str] = {}
    for name, value in headers.items():
        if name.lower().startswith(PREFIX):
            found[decoded(name[len(PREFIX) :])] = decoded(value)
        elif name.lower() in _STANDARD:
            found[name] = decoded(value)
    return found
