"""Confirms of NATS that arrive in another order than the messages were sent: each is that of its own message."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import aclosing, suppress

from pillarbox.core.errors import NackedError
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.transports.nats import NatsTransport
from tests.integration.nats.streams import jetstream, stored_ids
from tests.integration.rabbitmq.proxy import Proxy
from tests.servers.nats import NatsServer

EACH = 30
FIT = 10
"""Messages that fit into the second stream."""


def first_message(data: bytes) -> int:
    """The size of the first message of a server of NATS; 0 if it is not complete."""
    line, ended, _ = data.partition(b"\r\n")
    size = len(line) + 2
    if line.startswith((b"MSG ", b"HMSG ")):
        size += int(line.rpartition(b" ")[2]) + 2
    return size if ended and len(data) >= size else 0


class Reversing(Proxy):
    """Holds confirms and refusals back until it has so many, and then passes them on in reverse order."""

    count = 0
    reversed = 0

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, spoken: bool) -> None:
        buffered, held = b"", list[bytes]()
        with suppress(OSError):
            while data := await source.read(1 << 16):
                if not spoken or not self.count:
                    target.write(data)
                    continue
                buffered += data
                while size := first_message(buffered):
                    message, buffered = buffered[:size], buffered[size:]
                    if message.startswith((b"MSG ", b"HMSG ")):
                        held.append(message)
                    else:
                        target.write(message)
                if len(held) == self.count:
                    target.write(b"".join(reversed(held)))
                    self.reversed += len(held)
                    held = []


async def test_confirms_in_reverse_order_are_those_of_their_messages(nats_server: NatsServer) -> None:
    accepting, filling, missing = (f"test-{uuid.uuid4().hex[:12]}" for _ in range(3))
    async with jetstream(nats_server.url()) as context, Reversing(nats_server.port) as proxy:
        await context.add_stream(name=accepting)
        await context.add_stream(name=filling, max_msgs=FIT, discard="new")
        transport = NatsTransport(f"nats://127.0.0.1:{proxy.port}", declare=False)
        async with aclosing(transport):
            await transport.ping()
            names = [subject for _ in range(EACH) for subject in (filling, missing, accepting)]
            batch = [outgoing(f"{n}", NatsTransport.to(subject="{event_type}")) for n in range(len(names))]
            batch = [
                one._replace(message=one.message._replace(event_type=name))
                for one, name in zip(batch, names, strict=True)
            ]
            proxy.count = len(batch)
            results = await transport.send(batch)
        assert proxy.reversed == len(batch)
        accepted = {
            name: [f"{n}" for n, result in enumerate(results) if names[n] == name and result is None]
            for name in (accepting, filling, missing)
        }
        assert [len(accepted[name]) for name in (accepting, filling, missing)] == [EACH, FIT, 0]
        assert {type(result) for result in results} == {type(None), NackedError}
        assert {name: await stored_ids(nats_server.url(), name) for name in (accepting, filling)} | {
            missing: []
        } == accepted
        for n, result in enumerate(results):
            assert result is None or ("no stream answers" in str(result)) == (names[n] == missing)
        for name in (accepting, filling):
            await context.delete_stream(name)
