"""Keys whose events wait only for one another: what to do about them."""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.keys import HotKey
from pillarbox.ops.settings import Settings

MANY = 1_000
"""Events of one key that wait, from which on the key is worth a word."""


async def find_limited(store: AdminStore, hot: Sequence[HotKey]) -> HotKey | None:
    """The key with the most events, if they are many and nothing holds the key up; None otherwise."""
    if not hot or hot[0].waiting < MANY:
        return None
    held_up = {blocked.key for blocked in await store.admin.keys.blocked()}
    return None if hot[0].key in held_up else hot[0]


def advice(settings: Settings) -> str:
    """How events of one key leave faster with these settings; "" where they already do, or cannot."""
    brokers = {name for name, transport in settings.transports.items() if transport.kind == "rabbitmq"}
    if not brokers:
        return ""
    only = next(iter(settings.transports)) if len(settings.transports) == 1 else None
    ours = {name: given for name, given in settings.destinations.items() if (given.transport or only) in brokers}
    strict = [name for name, given in ours.items() if given.ordering == "strict"]
    if ours and not strict:
        return ""
    where = " or ".join(f"[destinations.{name}]" for name in strict[:3]) or "its [destinations.NAME]"
    return (
        "each of its events is sent once the one before was confirmed; use smaller keys, or, if an event that the "
        f'broker refuses may arrive after those behind it, set ordering = "pipelined" in {where}'
    )
