"""Compares the ledgers of a drill, and collects what its report needs."""

from __future__ import annotations

import asyncio
import platform
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.dead_letters import DeadLetterFilter
from pillarbox.core.clock import timestamp
from pillarbox.core.errors import UnavailableError
from pillarbox.ops.drill.checker import check
from pillarbox.ops.drill.faults import Nemesis
from pillarbox.ops.drill.interruptions import read_interruptions, unplanned
from pillarbox.ops.drill.ledger import read_arrivals, read_writings
from pillarbox.ops.drill.options import DrillOptions
from pillarbox.ops.drill.recovery import DeliveryTimes
from pillarbox.ops.drill.result import DrillResult, Remainder
from pillarbox.ops.drill.schedule import ExecutedFault
from pillarbox.ops.drill.target import DrillTarget
from pillarbox.plugins import DrillQueue

PAGE = 1000
READ_TIMEOUT = 60.0
"""Seconds within which the broker must list what it stored; else the order of the run is not known."""


async def compare(
    target: DrillTarget,
    options: DrillOptions,
    folder: Path,
    nemesis: Nemesis,
    faults: Sequence[ExecutedFault],
    *,
    began: float,
    remainder: Remainder,
) -> DrillResult:
    """Compare what was committed with what was received and applied. Raises StoreUnavailableError."""
    tables, queue = nemesis.tables, nemesis.queue
    writings = read_writings(folder, in_database=await tables.committed())
    arrivals = read_arrivals(folder)
    dead = await _dead_letters(nemesis.store)
    findings = check(
        writings.ledger,
        [arrival.event_id for arrival in arrivals],
        dead=dead,
        stale=nemesis.stale,
        effects=await tables.effects(),
    )
    broker_was_cut = any(fault.kind == "cut-broker" for fault in faults)
    order_is_known = queue is None or queue.redelivers_in_order or not broker_was_cut
    if queue is not None and not order_is_known and (stored := await _stored(queue)) is not None:
        order_is_known = True
        findings = findings._replace(out_of_order=check(writings.ledger, stored).out_of_order)
    times = DeliveryTimes(writings.committed_at, arrivals)
    interruptions = read_interruptions(folder)
    last = max((arrival.at for arrival in arrivals), default=began)
    return DrillResult(
        setup=await _setup(target, options, nemesis),
        seconds=time.monotonic() - began,
        committed=writings.ledger.count,
        rolled_back=len(writings.ledger.rolled_back),
        unknown_outcomes=writings.unknown,
        received=len(arrivals),
        findings=findings,
        order_is_known=order_is_known,
        remainder=remainder,
        dead_letters=len(dead),
        faults=faults,
        recoveries=[times.recovery(fault.recovers_from) for fault in faults],
        interruptions=len(interruptions),
        unplanned_interruptions=len(unplanned(interruptions, faults)),
        max_in_flight=target.max_in_flight,
        relays=options.relays + options.spared,
        began=began,
        latencies=times.latencies(began, max(last, began + 0.1)),
    )


async def _stored(queue: DrillQueue) -> Sequence[str] | None:
    """What the broker stored; None if it cannot tell, or does not respond."""
    until = time.monotonic() + READ_TIMEOUT
    while True:
        try:
            return await queue.stored()
        except UnavailableError:
            if time.monotonic() > until:
                return None
            await asyncio.sleep(0.5)


async def _dead_letters(store: AdminStore) -> list[str]:
    page = await store.admin.dead_letters.list(DeadLetterFilter(), limit=PAGE)
    return [one.event_id for one in page.dead_letters]


async def _setup(target: DrillTarget, options: DrillOptions, nemesis: Nemesis) -> dict[str, Any]:
    [(server,)] = await nemesis.tables.read("server_version")
    return {
        "seed": options.seed,
        "ended_at": timestamp(datetime.now(UTC)),
        "pillarbox": version("pillarbox"),
        "python": platform.python_version(),
        "store": target.engine,
        "store_version": str(server),
        "transport": target.broker,
        "options": {
            "seconds": options.seconds,
            "rate": options.rate,
            "relays": options.relays,
            "interval": options.interval,
            "keys": options.keys,
            "faults": [kind for kind in nemesis.kinds() if options.includes(kind)],
        },
    }
