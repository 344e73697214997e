"""Reads streams with redis-py, as any other client would."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tests.servers.redis import RedisServer


class Entry(NamedTuple):
    """An entry of a stream."""

    entry_id: str
    fields: Mapping[bytes, bytes]

    def text(self, name: str) -> str:
        return self.fields[name.encode()].decode()

    @property
    def body(self) -> bytes:
        return self.fields[b"body"]

    @property
    def headers(self) -> dict[str, str]:
        prefix = b"header:"
        return {
            name.removeprefix(prefix).decode(): value.decode()
            for name, value in self.fields.items()
            if name.startswith(prefix)
        }


def entries(server: RedisServer, stream: str, **options: Any) -> list[Entry]:
    """All entries of a stream, in its order; none if there is no such stream."""
    with server.client(**options) as client:
        found: Any = client.xrange(stream)
        return [Entry(entry_id.decode(), fields) for entry_id, fields in found]


def ids(server: RedisServer, stream: str) -> list[str]:
    """The event ids of a stream, in its order."""
    return [one.text("id") for one in entries(server, stream)]
