"""Do the settings hang together, and does anything in them keep a relay from working?"""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.diagnosis import Answer, Check, failed, passed, warned
from pillarbox.core.errors import ConfigurationError
from pillarbox.ops.settings import Settings
from pillarbox.ops.settings.masking import masked
from pillarbox.ops.settings.sources import FAILPOINT, TRANSPORT
from pillarbox.ops.settings.transports import TRANSPORTS
from pillarbox.ops.wiring import make_outbox, make_relay, open_transports

READ = "settings.read"
READ_FIX = "`pillarbox config check` names each with its place"


def checks(settings: Settings, store: AdminStore) -> Sequence[Check]:
    async def read() -> Answer:
        return passed(f"the settings can be read; the store is {masked(settings.store.url)}")

    async def relay() -> Answer:
        return await _relay(settings, store)

    async def notes() -> Answer:
        if settings.notes:
            return warned("; ".join(settings.notes), "see `pillarbox config show` for where each comes from")
        return passed("nothing in the settings is worth a word")

    async def failpoint() -> Answer:
        if settings.failpoint:
            return failed(f"{FAILPOINT} is set: a relay kills itself on purpose", f"unset {FAILPOINT}")
        return passed("no failpoint is armed")

    return [
        Check(name=READ, ask=read),
        Check(name="settings.relay", ask=relay),
        Check(name="settings.notes", ask=notes),
        Check(name="settings.failpoint", ask=failpoint),
    ]


async def _relay(settings: Settings, store: AdminStore) -> Answer:
    """Can a relay be made of them? Connects to nothing."""
    if not settings.relay.config.enabled:
        called = settings.called("relay", "enabled")
        return warned(f"{called} is false: a relay with these settings says so and ends", f"set {called} to true")
    if not settings.transports:
        return warned(
            "no transport is set: events can be recorded, but not sent",
            f"set {TRANSPORT} to {TRANSPORTS}, or name one under [transports] in the settings file",
        )
    transports = {}
    try:
        make_outbox(settings)
        transports = open_transports(settings)
        make_relay(settings, store=store, transports=transports)
    except ConfigurationError as error:
        return failed("; ".join(str(error).splitlines()), READ_FIX)
    finally:
        for transport in transports.values():
            await transport.aclose()
    return passed(f"a relay can be made: {', '.join(settings.transports)}")
