"""Check that the settings are consistent and that a relay can start with them."""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.diagnosis import Check, CheckResult, failed, passed, warned
from pillarbox.core.errors import ConfigurationError
from pillarbox.ops.settings import Settings
from pillarbox.ops.settings.masking import masked
from pillarbox.ops.settings.sources import FAILPOINT, TRANSPORT
from pillarbox.ops.settings.transports import TRANSPORTS
from pillarbox.ops.wiring import make_outbox, make_relay, open_transports
from pillarbox.transports.handlers import Handlers

READ = "settings.read"
READ_FIX = "correct the setting; `pillarbox config check` names each error and where the value comes from"


def checks(settings: Settings, store: AdminStore) -> Sequence[Check]:
    async def read() -> CheckResult:
        return passed(f"the settings are valid; the store is {masked(settings.store.url)}")

    async def relay() -> CheckResult:
        return await _relay(settings, store)

    async def notes() -> CheckResult:
        if settings.notes:
            return warned("; ".join(settings.notes), "see `pillarbox config show` for the origin of each value")
        return passed("there are no notes on the settings")

    async def failpoint() -> CheckResult:
        if settings.failpoint:
            return failed(f"{FAILPOINT} is set: relays crash on purpose, for tests", f"unset {FAILPOINT}")
        return passed("no failpoint is armed")

    return [
        Check(name=READ, ask=read),
        Check(name="settings.relay", ask=relay),
        Check(name="settings.notes", ask=notes),
        Check(name="settings.failpoint", ask=failpoint),
    ]


async def _relay(settings: Settings, store: AdminStore) -> CheckResult:
    """Build a relay from the settings, without connecting."""
    if not settings.relay.config.enabled:
        called = settings.called("relay", "enabled")
        return warned(f"{called} is false: a relay exits at once with these settings", f"set {called} to true")
    if not settings.transports:
        return warned(
            "no transport is configured: events can be recorded, but not sent",
            f"set {TRANSPORT} to {TRANSPORTS}, or add one under [transports] to the settings file",
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
            # A relay of this process may use the handlers of the application.
            if not isinstance(transport, Handlers):
                await transport.aclose()
    return passed(f"a relay can start; transports: {', '.join(settings.transports)}")
