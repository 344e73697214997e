"""Content types for which every database must agree with `is_json`."""

CONTENT_TYPES = [
    "application/json",
    "Application/JSON",
    "application/json; charset=utf-8",
    "application/json ;charset=utf-8",
    "text/json",
    "application/cloudevents+json",
    "application/vnd.shop.v2+JSON; profile=x",
    "text/plain",
    "text/plain; format=json",
    "application/octet-stream",
    "application/x-ndjson",
    "application/jsonlines",
    "json",
]
