"""Adds to streams and reads them with redis-py, as any other client would."""

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


def put(server: RedisServer, stream: str, *ids: str, **fields: str) -> None:
    """Add entries with these event ids."""
    with server.client() as client:
        for event_id in ids:
            client.xadd(stream, {"id": event_id, "type": "t", "body": "{}", **fields})


def pending(server: RedisServer, stream: str, group: str = "pillarbox") -> list[dict[str, Any]]:
    """Each with message_id, consumer, time_since_delivered and times_delivered."""
    with server.client() as client:
        found: Any = client.xpending_range(stream, group, "-", "+", 100)
        return list(found)


def consumers(server: RedisServer, stream: str, group: str = "pillarbox") -> int:
    """How many consumers a group has."""
    with server.client() as client:
        return len(client.xinfo_consumers(stream, group))
