"""Statistics over time, as relays wrote them."""

from __future__ import annotations

import json

from pillarbox.core.statistics import MAX_SAMPLES, Sample
from pillarbox.stores.admin.engine import Engine


class SqlSamples:
    """See `pillarbox.admin.admin.Samples`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._since = engine.statement("statistics_since")

    async def since(self, seconds: float) -> list[Sample]:
        rows = await self._engine.read(self._since, {"seconds": seconds, "most": MAX_SAMPLES})
        return [
            Sample.read(self._engine.decode_time(at), relay, destination, json.loads(statistics))
            for at, relay, destination, statistics in reversed(rows)
        ]
