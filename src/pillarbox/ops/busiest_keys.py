"""Find keys whose pending events only wait for each other, and advise how to send them faster."""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.keys import BusiestKey
from pillarbox.ops.settings import Settings

MANY_PENDING = 1_000
"""Pending events of one key from which on the key is reported."""


async def find_limited(store: AdminStore, busiest: Sequence[BusiestKey]) -> BusiestKey | None:
    """Return the key with the most pending events, if there are many and the key is not blocked; None otherwise."""
    if not busiest or busiest[0].pending < MANY_PENDING:
        return None
    blocked_keys = {blocked.key for blocked in await store.admin.keys.blocked()}
    return None if busiest[0].key in blocked_keys else busiest[0]


def advice(settings: Settings) -> str:
    """Say how events of one key are sent faster with these settings; "" if they already are, or cannot be."""
    pipelined = {name for name, transport in settings.transports.items() if transport.plugin.pipelined}
    if not pipelined:
        return ""
    only = next(iter(settings.transports)) if len(settings.transports) == 1 else None
    ours = {name: given for name, given in settings.destinations.items() if (given.transport or only) in pipelined}
    strict = [name for name, given in ours.items() if given.ordering == "strict"]
    if ours and not strict:
        return ""
    where = " or ".join(f"[destinations.{name}]" for name in strict[:3]) or "its [destinations.NAME]"
    return (
        "each of its events is sent once the previous one is confirmed; use smaller keys, or, if an event that the "
        f'broker rejects may arrive after later ones, set ordering = "pipelined" in {where}'
    )
