"""Rows that producers may insert with plain SQL: values at and beyond the limits of every column."""

import random
from typing import Any

DEEP = '{"a":' * 3000 + "1" + "}" * 3000
TEXTS: list[str] = [
    *("", " ", "t", "a.b.c", "order.placed", "#", "*", "%", "'", '"', "\\", "{}", "null", "..", "/", "a" * 255),
    *("é" * 127, "\u0085", "\u2028", "\ufeff", "\u202e", "\U0001f600", "\ud7ff", "\x7f", "\x01", "\n", "tab\t"),
    *("x" * 256, "x" * 9000),
]
HEADERS: list[str] = [
    *("{}", '{"tenant":"é"}', "[]", "null", '"x"', '{"n":1}', '{"n":1e400}', '{"n":-1e-400}', '{"n":null}'),
    *('{"n":[1,{}]}', '{"":""}', '{"traceparent":"no"}', '{"x":"\\u0001"}', '{"replayof":5}', '{"eventType":[]}'),
    *('{"\\n":"\\n"}', f'{{"n":{"9" * 5000}}}', f'{{"{"k" * 300}":"v"}}', f'{{"k":"{"v" * 100_000}"}}'),
    *(DEEP, DEEP.replace("1", "[]"), "{" + ",".join(f'"h{number}":"v"' for number in range(300)) + "}"),
]
# Written so that both databases read the same.
TIMES = [
    *("2020-01-01T00:00:00.000Z", "0001-01-01T00:00:00.001Z", "9999-12-31T23:59:59.998Z", "1970-01-01T00:00:00.000Z"),
    *("1582-10-10T00:00:00.000Z", "2016-12-31T23:59:60.000Z", "0000-01-01T00:00:00.000Z", "20000-01-01T00:00:00.000Z"),
    *("infinity", "-infinity", "0044-03-15 BC", "tomorrow"),
]
PAST = [*TIMES[:2], *TIMES[3:5], "-infinity", "0044-03-15 BC"]
COUNTS = [0, 1, 2, 3, 10, 65, -1, -(2**31), 10**9, 10**9 + 1, 2**31 - 1, 2**63 - 1]
IDS = [1, 0, -1, 2**31, 2**62, 2**63 - 2, 2**63 - 1]
PAYLOADS = [b"", b"{}", b"\xff\x00", b'{"a":1}', b"[" * 3000, b"x" * 5000, '"é"'.encode()]

CHOICES: dict[str, list[Any]] = {
    "event_type": TEXTS,
    "aggregate_type": TEXTS,
    "aggregate_id": TEXTS,
    "ordering_key": TEXTS,
    "content_type": [*TEXTS, "application/json", "application/json; charset=x"],
    "headers": HEADERS,
    "schema_version": [1, 0, -1, 2**31 - 1, -(2**31), 2**63 - 1],
    "correlation_id": TEXTS,
    "causation_id": TEXTS,
    "trace_id": [*TEXTS, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"],
    "occurred_at": TIMES,
    "recorded_at": TIMES,
    "available_at": PAST,
    "held": ["waiting", "parked", "blocked", "no", ""],
    "attempts": COUNTS,
    "deferrals": COUNTS,
    "last_error": TEXTS,
    "first_failed_at": TIMES,
    "last_attempt_at": TIMES,
    "payload": PAYLOADS,
}


def strange_row(rng: random.Random, number: int) -> dict[str, Any]:
    """A row with a few unusual columns; many are rejected, and each other one must reach an outcome."""
    event_id = f"{number} {rng.choice(TEXTS)}" if rng.random() < 0.2 else f"{number}"
    row: dict[str, Any] = {"event_id": event_id, "event_type": "t", "payload": b"{}"}
    for column in rng.sample(list(CHOICES), rng.choice([1, 1, 1, 1, 2, 2, 3])):
        row[column] = rng.choice(CHOICES[column])
    if rng.random() < 0.1:
        # An unknown destination: it is dead-lettered after its last deferral.
        row |= {"destination": rng.choice(TEXTS), "deferrals": 65}
    return row
