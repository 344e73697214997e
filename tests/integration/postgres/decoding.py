"""What Debezium does with an outbox, as far as a test needs it: decodes the slot, and routes each inserted row.

`decoded` reads the messages of PostgreSQL's `pgoutput` (protocol version 1). `routed` applies the options of
`io.debezium.transforms.outbox.EventRouter` to a row: it is a model of that transformation, made from its source.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg

from pillarbox.core.clock import timestamp

_BYTEA, _TIMESTAMPTZ, _INTEGERS = 17, 1184, (20, 21, 23)


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert:
    """One inserted row, with the transaction that inserted it."""

    xid: int
    table: str
    row: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaRecord:
    """What the connector sends."""

    topic: str
    key: str | None
    value: bytes
    headers: Mapping[str, str | None]


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, form: str) -> Any:
        values = struct.unpack_from(f">{form}", self._data, self._at)
        self._at += struct.calcsize(f">{form}")
        return values[0] if len(values) == 1 else values

    def text(self) -> str:
        end = self._data.index(b"\0", self._at)
        found = self._data[self._at : end].decode()
        self._at = end + 1
        return found

    def raw(self, size: int) -> bytes:
        self._at += size
        return self._data[self._at - size : self._at]


def decoded(connection: psycopg.Connection[Any], slot: str, publication: str) -> list[Insert]:
    """All committed changes since the last call, in the order in which the slot has them; then the slot advances.

    Raises AssertionError for anything but inserts.
    """
    changes = connection.execute(
        "SELECT data FROM pg_logical_slot_get_binary_changes(%s, NULL, NULL, 'proto_version', '1',"
        " 'publication_names', %s)",
        [slot, publication],
    )
    return list(_inserts(bytes(data) for (data,) in changes.fetchall()))


def _inserts(messages: Iterator[bytes]) -> Iterator[Insert]:
    relations: dict[int, tuple[str, list[tuple[str, int]]]] = {}
    xid: int | None = None
    for message in messages:
        reader = _Reader(message)
        match reader.take("c"):
            case b"B":
                assert xid is None, "a transaction begins within another one"
                *_, xid = reader.take("qqI")
            case b"C":
                xid = None
            case b"R":
                oid = reader.take("I")
                table = f"{reader.text()}.{reader.text()}"
                _, number = reader.take("cH")
                relations[oid] = table, [_column(reader) for _ in range(number)]
            case b"I":
                assert xid is not None, "an insert outside of a transaction"
                table, columns = relations[reader.take("I")]
                _, number = reader.take("cH")
                assert number == len(columns)
                yield Insert(xid=xid, table=table, row={name: _value(reader, kind) for name, kind in columns})
            case b"Y" | b"O":
                pass  # a type or an origin
            case other:
                raise AssertionError(f"the publication has more than inserts: {other!r}")


def _column(reader: _Reader) -> tuple[str, int]:
    reader.take("b")
    name = reader.text()
    kind, _ = reader.take("Ii")
    return name, kind


def _value(reader: _Reader, kind: int) -> Any:
    match reader.take("c"):
        case b"n":
            return None
        case b"t":
            text = reader.raw(reader.take("I")).decode()
        case other:
            raise AssertionError(f"a value of kind {other!r}")
    if kind == _BYTEA:
        return bytes.fromhex(text.removeprefix("\\x"))
    if kind == _TIMESTAMPTZ:
        return datetime.fromisoformat(text)
    return int(text) if kind in _INTEGERS else text


def routed(row: Mapping[str, Any], connector: Mapping[str, str]) -> KafkaRecord:
    """The record of a row. Raises KeyError for an option or a column that does not exist."""
    options = {
        name.removeprefix("transforms.outbox."): value
        for name, value in connector.items()
        if name.startswith("transforms.outbox.")
    }
    assert options.pop("type") == "io.debezium.transforms.outbox.EventRouter"
    headers = {"id": row[options.pop("table.field.event.id")]}
    for placement in options.pop("table.fields.additional.placement").split(","):
        column, where, alias = placement.split(":")
        assert where == "header"
        headers[alias] = _as_header(row[column])
    topic = options.pop("route.topic.replacement").replace("${routedByValue}", row[options.pop("route.by.field")])
    key = row[options.pop("table.field.event.key")]
    value = row[options.pop("table.field.event.payload")]
    assert row[options.pop("table.field.event.type")]
    assert not options, f"options that this model does not know: {sorted(options)}"
    return KafkaRecord(topic=topic, key=key, value=value, headers=headers)


def _as_header(value: Any) -> str | None:
    if value is None:
        return None
    return timestamp(value) if isinstance(value, datetime) else str(value)
