"""The stdout transport fulfils the contract of all transports, as far as a stream can."""

import json
from base64 import b64decode
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pillarbox.core.transport import Address
from pillarbox.testing.conformance.transports import (
    Arrived,
    TransportCapabilities,
    TransportConformance,
    TransportHarness,
)
from pillarbox.transports.stdout import StdoutTransport


class StdoutHarness(TransportHarness):
    """Writes to a file, which is read line by line."""

    capabilities = TransportCapabilities()

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stream = path.open("w", encoding="utf-8")
        self._transport = StdoutTransport(self._stream)

    @property
    def transport(self) -> StdoutTransport:
        return self._transport

    def address(self, n: int = 0) -> Address:
        return self._transport.to(f"place {n}")

    async def received(self, address: Address) -> list[Arrived]:
        lines = [json.loads(line) for line in self._path.read_text(encoding="utf-8").splitlines()]
        return [
            Arrived(line["event_id"], body(line), line["headers"], line["content_type"])
            for line in lines
            if self._transport.to(line["destination"]) == address
        ]

    async def aclose(self) -> None:
        await self._transport.aclose()
        self._stream.close()


def body(line: dict[str, str]) -> bytes:
    if "base64" in line:
        return b64decode(line["base64"])
    return line["text"].encode() if "text" in line else json.dumps(line["payload"]).encode()


class TestStdout(TransportConformance):
    @pytest.fixture
    async def harness(self, tmp_path: Path) -> AsyncIterator[TransportHarness]:
        harness = StdoutHarness(tmp_path / "lines")
        yield harness
        await harness.aclose()
