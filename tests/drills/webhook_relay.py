"""`python -m tests.drills.webhook_relay`: a relay of a drill that sends webhooks to the receiver at DRILL_RECEIVER."""

from __future__ import annotations

import os
from contextlib import AsyncExitStack
from typing import Any

from pillarbox.core.transport import Transport
from pillarbox.ops.drill import relay_process
from pillarbox.ops.drill.target import DrillJob, DrillTarget
from pillarbox.transports.webhook import WebhookTransport
from tests.drills.webhook_receiver import SECRET


def to_receiver(target: DrillTarget, job: DrillJob, opened: AsyncExitStack) -> tuple[Transport, dict[str, Any]]:
    hooks = WebhookTransport(
        os.environ["DRILL_RECEIVER"], secrets=[SECRET], allow_networks=["127.0.0.0/8"], send_timeout="2s"
    )
    opened.push_async_callback(hooks.aclose)
    return hooks, {}


if __name__ == "__main__":
    relay_process._transport = to_receiver
    raise SystemExit(relay_process.main())
