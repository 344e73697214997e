"""Idle connections to the metrics port of an application do not block other clients."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress

import httpx
import pytest
from prometheus_client import CollectorRegistry

from apps.runtime.port import serving

IDLE = 200


async def healthy() -> tuple[bool, Mapping[str, object]]:
    return True, {}


@pytest.fixture
async def address() -> AsyncIterator[tuple[str, int]]:
    with socket.create_server(("127.0.0.1", 0)) as port:
        async with serving(port, CollectorRegistry(), healthy):
            yield port.getsockname()


@pytest.mark.parametrize("begin", [b"", b"GET /health HTTP/1.1\r\nX-Slow: "], ids=["silent", "half a request"])
async def test_idle_connections_do_not_block_metrics_and_health(address: tuple[str, int], begin: bytes) -> None:
    opened = [await asyncio.open_connection(*address) for _ in range(IDLE)]
    try:
        for _, writer in opened:
            with suppress(ConnectionError):  # beyond the limit
                writer.write(begin)
                await writer.drain()
        async with httpx.AsyncClient(base_url=f"http://{address[0]}:{address[1]}", timeout=60) as client:
            for path in ("/health", "/health/live", "/metrics"):
                assert (await client.get(path)).status_code == 200
    finally:
        for _, writer in opened:
            writer.close()
