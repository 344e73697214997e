"""The events of all benchmarks: 320 bytes of JSON with a number that identifies each event in the queue."""

from __future__ import annotations

SIZE = 320
MARKER = rb"#([0-9]{10})#"
KEYS = 20_000
EVENT_TYPE = "order.placed"

_START, _MIDDLE, _END = '{"marker":"', '","pad":"', '"}'
_PAD = SIZE - len(_START) - len(_MIDDLE) - len(_END) - len("#0000000000#")

PAYLOAD_SQL = f"'{_START}#' || lpad(g::text, 10, '0') || '#{_MIDDLE}{'x' * _PAD}{_END}'"
"""The payload of event g, as text."""

FILL = f"""
INSERT INTO outbox_message (event_type, payload, ordering_key)
SELECT '{EVENT_TYPE}', convert_to({PAYLOAD_SQL}, 'UTF8'), 'ORDER:' || (g::bigint * 7919 %% %(keys)s)
FROM generate_series(1, %(events)s) g
"""


def payload(number: int) -> bytes:
    """The same payload, in Python."""
    return f"{_START}#{number:010d}#{_MIDDLE}{'x' * _PAD}{_END}".encode()
