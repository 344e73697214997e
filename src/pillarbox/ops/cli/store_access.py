"""Open the store of the settings for one command, and close it."""

from __future__ import annotations

import asyncio
import getpass
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import click

from pillarbox import schemes
from pillarbox.admin.admin import AdminStore
from pillarbox.core.errors import ConfigurationError
from pillarbox.ops.cli.context import current_invocation, current_settings
from pillarbox.ops.operator_requests import has_running_relay
from pillarbox.ops.settings import Settings
from pillarbox.ops.wiring import open_store

T = TypeVar("T")


def with_shared_store(work: Callable[[AdminStore], Awaitable[T]]) -> T:
    """Run `work` with the store of the settings; returns its result.

    Raises ConfigurationError for a store that exists in one process only.
    """
    refuse_memory(current_settings())
    name_default_store()

    async def run() -> T:
        store = open_store(current_settings().store)
        try:
            return await work(store)
        finally:
            await store.aclose()

    return asyncio.run(run())


def name_default_store() -> None:
    """Print which file the command uses if no setting names a store: it may not be the one that the operator means."""
    invocation = current_invocation()
    [entry] = [entry for entry in invocation.settings.entries if entry.path == ("store", "url")]
    if entry.origin.kind == "default" and not invocation.named_store:
        invocation.named_store = True
        file = Path(invocation.settings.store.url.removeprefix("sqlite:///")).absolute()
        click.echo(f"pillarbox: using {file}; PILLARBOX_STORE or DATABASE_URL names another store", err=True)


def refuse_memory(settings: Settings) -> None:
    """Raise ConfigurationError for a store that exists in one process only."""
    scheme = schemes.scheme_of(settings.store.url)
    if not schemes.store_plugin(scheme).shared:
        raise ConfigurationError(
            f"{scheme}:// exists only in the process that opened it, so that this command would see an empty store: "
            "set PILLARBOX_STORE to postgresql://…, mariadb://… or sqlite:///file.db"
        )


def warn_without_relay() -> None:
    """Print a warning if no relay is running that can execute the request."""
    if not with_shared_store(has_running_relay):
        click.echo(
            "pillarbox: no relay is running: the request is executed when one starts; see `pillarbox relays list`",
            err=True,
        )


def operator() -> str:
    """Return the name of the operator, for the audit log."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
