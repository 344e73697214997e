"""Reads CloudEvents 1.0 of any producer, in both content modes and with the prefixes of all protocol bindings.

    structured   content type application/cloudevents+json: the body is a JSON object with the attributes and the data
    binary       a header `PREFIXspecversion`: the attributes are headers with that prefix, and the body is the data

Invariant: properties and headers of the message take precedence over attributes of the CloudEvent. JSON data of a
structured CloudEvent is cut out of the body byte for byte: its digits and the order of its keys are the producer's.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

from pillarbox.core.clock import timestamp
from pillarbox.core.errors import PermanentError
from pillarbox.core.event import BYTES, JSON, TRACEPARENT, TRACESTATE
from pillarbox.core.payload import is_json, refuse_constant
from pillarbox.core.source import Incoming

PREFIXES = ("ce-", "ce_", "cloudevents_", "cloudevents:")
"""In lower case: HTTP, NATS and RabbitMQ; Kafka; AMQP. Header names of HTTP may have any case."""
STRUCTURED = "application/cloudevents+json"

_NONE: Mapping[str, str] = MappingProxyType({})
_SPACE = re.compile(r"[ \t\n\r]*")
_VERSION = re.compile("[0-9]{1,10}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_decode = json.JSONDecoder(parse_constant=refuse_constant).raw_decode


def unpack(incoming: Incoming) -> tuple[Incoming, Mapping[str, str]]:
    """The message with the data of its CloudEvent as body, and the CloudEvent's attributes as text.

    What properties and headers lack is filled in from the attributes. A message that is not a CloudEvent stays as it
    is, and has no attributes. Raises PermanentError for a structured CloudEvent that cannot be read.
    """
    if (incoming.content_type or "").partition(";")[0].strip().lower() == STRUCTURED:
        attributes, body = _structured(incoming.body)
        content_type = attributes.get("datacontenttype")
    else:
        attributes, body = _attributes(incoming.headers), incoming.body
        content_type = incoming.content_type or attributes.get("datacontenttype")
        if not attributes.get("specversion", "").startswith("1."):
            return incoming, _NONE
    if not body and content_type is not None and is_json(content_type):
        body = b"null"  # a CloudEvent may have no data
    unpacked = replace(
        incoming,
        event_id=incoming.event_id or attributes.get("id"),
        event_type=incoming.event_type or incoming.headers.get("eventType") or attributes.get("type"),
        correlation_id=incoming.correlation_id or attributes.get("correlationid"),
        body=body,
        content_type=content_type,
        headers=MappingProxyType({**_as_headers(attributes, incoming.headers), **incoming.headers}),
    )
    return unpacked, MappingProxyType(attributes)


def id_and_type(incoming: Incoming) -> tuple[str | None, str | None]:
    """The event id and the event type of a message, also of a CloudEvent. Raises nothing, whatever a producer wrote."""
    with suppress(PermanentError):
        incoming, _ = unpack(incoming)
    return incoming.event_id, incoming.event_type or incoming.headers.get("eventType")


def _attributes(headers: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in headers.items():
        lower = name.lower()
        if lower.startswith(PREFIXES):
            found[lower[len(next(one for one in PREFIXES if lower.startswith(one))) :]] = value
    return found


def _structured(body: bytes) -> tuple[dict[str, str], bytes]:
    """The attributes and the data. Raises PermanentError."""
    try:
        members = _members(body.decode())
    except (ValueError, RecursionError) as error:
        # Without the cause, which contains the whole document.
        raise PermanentError(
            f"the message has the content type {STRUCTURED}, and its body is not a JSON object "
            f"({type(error).__name__}); correct the producer"
        ) from None
    version = members.get("specversion", ("", ""))[0]
    if not (isinstance(version, str) and version.startswith("1.")):
        raise PermanentError(
            f"the message is a CloudEvent of version {str(version)[:40]!r}, and only 1.0 can be read; send 1.0"
        )
    attributes = {
        name: text
        for name, (value, _) in members.items()
        if name not in ("data", "data_base64") and (text := _text(value)) is not None
    }
    if "data_base64" in members and members["data_base64"][0] is not None:
        attributes.setdefault("datacontenttype", BYTES)
        return attributes, _from_base64(members)
    attributes.setdefault("datacontenttype", JSON)
    value, raw = members.get("data", (None, ""))
    if isinstance(value, str) and not is_json(attributes["datacontenttype"]):
        raw = value
    return attributes, raw.encode(errors="surrogatepass")


def _members(document: str) -> dict[str, tuple[Any, str]]:
    """The members of a JSON object, each as a value and as it is written. Raises ValueError, RecursionError."""
    members: dict[str, tuple[Any, str]] = {}
    at = _expect("{", document, 0)
    if document.startswith("}", at):
        at = _expect("}", document, at)
    else:
        while True:
            name, end = _decode(document, at)
            if not isinstance(name, str):
                raise ValueError("the name of a member is not text")
            start = _expect(":", document, _after_space(document, end))
            value, end = _decode(document, start)
            members[name] = value, document[start:end]
            at = _after_space(document, end)
            if not document.startswith(",", at):
                break
            at = _expect(",", document, at)
        at = _expect("}", document, at)
    if at != len(document):
        raise ValueError("something follows the object")
    return members


def _expect(character: str, document: str, at: int) -> int:
    at = _after_space(document, at)
    if not document.startswith(character, at):
        raise ValueError(f"{character} is missing")
    return _after_space(document, at + 1)


def _after_space(document: str, at: int) -> int:
    found = _SPACE.match(document, at)
    return at if found is None else found.end()


def _from_base64(members: Mapping[str, tuple[Any, str]]) -> bytes:
    encoded = members["data_base64"][0]
    if members.get("data", (None, ""))[0] is not None:
        raise PermanentError("the CloudEvent has both data and data_base64; correct the producer")
    try:
        return b64decode(encoded, validate=True)
    except (TypeError, ValueError) as error:
        raise PermanentError(f"data_base64 of the CloudEvent is not base64: {error}; correct the producer") from None


def _text(value: object) -> str | None:
    """An attribute as text; None for what CloudEvents do not allow."""
    match value:
        case bool():
            return "true" if value else "false"
        case str() | int():
            return str(value)
        case _:
            return None


def _as_headers(attributes: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """The attributes as the headers that a relay of Pillarbox sends."""
    headers: dict[str, str] = {}
    if (time := _time(attributes.get("time", ""))) is not None:
        headers["occurredAt"] = time
    if subject := attributes.get("subject"):
        kind, has_kind, identity = subject.partition("/")
        if kind and has_kind and identity:
            headers |= {"aggregateType": kind, "aggregateId": identity}
        else:
            headers["aggregateId"] = subject
    if _VERSION.fullmatch(version := attributes.get("schemaversion", "")):
        headers["schemaVersion"] = version
    if causation := attributes.get("causationid"):
        headers["causationId"] = causation
    if TRACEPARENT not in given:
        headers |= {name: attributes[name] for name in (TRACEPARENT, TRACESTATE) if name in attributes}
    if "aggregateId" in given:
        headers.pop("aggregateType", None)
    return headers


def _time(text: str) -> str | None:
    """A time as RFC 3339 text; AMQP also has milliseconds since 1970."""
    if not (text.isascii() and text.removeprefix("-").isdecimal()):
        return text or None
    try:
        return timestamp(_EPOCH + timedelta(milliseconds=int(text)))
    except (OverflowError, ValueError):
        return None
