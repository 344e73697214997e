"""A database, mail server and gateway, and a relay of deliveries."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from email.headerregistry import Address
from pathlib import Path

import pytest

from apps.notifications.delivery.relay import delivering
from apps.notifications.delivery.settings import DeliverySettings
from apps.notifications.delivery.settings import Gateway as GatewayAt
from apps.notifications.delivery.settings import MailServer as MailServerAt
from pillarbox import ExponentialBackoff, Relay, RelayConfig
from tests.apps.notifications.delivery.delivery_database import Deliveries
from tests.apps.notifications.delivery.servers import Gateway, MailServer

FAST_RETRY = ExponentialBackoff(base="50ms", max_delay="200ms", jitter="none", max_attempts=3)


@pytest.fixture
def deliveries(sqlite_database: str) -> Iterator[Deliveries]:
    with Deliveries.of(sqlite_database) as deliveries:
        yield deliveries


@pytest.fixture
def mail(tmp_path: Path) -> Iterator[MailServer]:
    """A running mail server."""
    server = MailServer(tmp_path / "mail")
    server.start()
    yield server
    server.close()


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    server = Gateway()
    yield server
    server.close()


@pytest.fixture
def settings(mail: MailServer, gateway: Gateway) -> DeliverySettings:
    return DeliverySettings(
        mail=MailServerAt(host="127.0.0.1", port=mail.port),
        sender=Address(display_name="Shop", addr_spec="noreply@example.org"),
        push=GatewayAt(url=f"{gateway.url}/push"),
        sms=GatewayAt(url=f"{gateway.url}/sms"),
    )


@pytest.fixture
def running(settings: DeliverySettings) -> Callable[..., AbstractAsyncContextManager[Relay]]:
    """Runs a relay while the block is open."""

    @asynccontextmanager
    async def run(deliveries: Deliveries, others: DeliverySettings = settings) -> AsyncIterator[Relay]:
        async with delivering(
            deliveries.url, others, retry=FAST_RETRY, config=RelayConfig(poll_interval="100ms")
        ) as relay:
            task = asyncio.create_task(relay.run())
            yield relay
            relay.stop()
            await task

    return run
