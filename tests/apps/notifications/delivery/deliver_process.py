"""A relay of deliveries in a separate process, with a short lease, so that another one takes over soon after a kill."""

from __future__ import annotations

import asyncio
import os
import signal

from apps.notifications.delivery.relay import delivering
from apps.notifications.delivery.settings import DeliverySettings
from pillarbox import RelayConfig

CONFIG = RelayConfig(lease="2s", heartbeat_interval="200ms", send_timeout="500ms", poll_interval="100ms")


async def main() -> None:
    settings = DeliverySettings.from_environment(os.environ)
    async with delivering(os.environ["DATABASE"], settings, config=CONFIG) as relay:

        def stop() -> None:
            print("stop requested", flush=True)
            relay.stop()

        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
        await relay.run()


if __name__ == "__main__":
    asyncio.run(main())
