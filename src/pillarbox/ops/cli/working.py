"""What commands share that open the store, do one thing and close it again."""

from __future__ import annotations

import asyncio
import getpass
from collections.abc import Awaitable, Callable
from typing import TypeVar

import click

from pillarbox import plugins
from pillarbox.admin.admin import AdminStore
from pillarbox.core.errors import ConfigurationError
from pillarbox.ops.asking import anybody
from pillarbox.ops.cli.context import current_settings
from pillarbox.ops.settings import Settings
from pillarbox.ops.wiring import open_store

T = TypeVar("T")


def with_store(work: Callable[[AdminStore], Awaitable[T]]) -> T:
    """What `work` makes of the store that the settings name."""

    async def run() -> T:
        store = open_store(current_settings().store)
        try:
            return await work(store)
        finally:
            await store.aclose()

    return asyncio.run(run())


def with_shared_store(work: Callable[[AdminStore], Awaitable[T]]) -> T:
    """`with_store` for what other processes wrote. Raises ConfigurationError for a store that lives in one process."""
    refuse_memory(current_settings())
    return with_store(work)


def refuse_memory(settings: Settings) -> None:
    """Raise ConfigurationError for a store that nobody else can reach."""
    scheme = plugins.scheme_of(settings.store.url)
    if not plugins.store_plugin(scheme).shared:
        raise ConfigurationError(
            f"{scheme}:// lives in the process that opened it, so this command would see an empty one: "
            "set PILLARBOX_STORE to postgresql://… or sqlite:///file.db"
        )


def warn_without_relay() -> None:
    """Say so where nobody is there to do what was asked."""
    if not with_shared_store(anybody):
        click.echo("pillarbox: no relay is running: it is done once one is; see `pillarbox relays list`", err=True)


def operator() -> str:
    """Who is at the keyboard, for the audit."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
