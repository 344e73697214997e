"""What a drill creates on the user's servers: it refuses to use anything that exists, and removes all of it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, aclosing

from pillarbox.admin.admin import AdminStore
from pillarbox.core.errors import CommandError, ConfigurationError, PillarboxError
from pillarbox.ops.drill.database import DrillTables
from pillarbox.ops.drill.target import DrillTarget
from pillarbox.ops.wiring import open_store
from pillarbox.plugins import DrillQueue

_log = logging.getLogger("pillarbox.drill")


def describe_objects(target: DrillTarget) -> list[str]:
    """Return what a drill creates, one line each."""
    store = target.settings.store
    if target.engine == "sqlite":
        lines = [f"file {store.url.removeprefix('sqlite:///')}, and files beside it that begin with its name"]
    else:
        place = f"schema {store.schema}" if target.engine.startswith("postgres") else "the database"
        lines = [f"tables, views and functions {store.prefix}… in {place}"]
    queue = target.open_queue()
    return [*lines, *(() if queue is None else queue.names)]


async def create_queue(target: DrillTarget, opened: AsyncExitStack) -> DrillQueue | None:
    """Create the queue of a drill; it is removed when `opened` is closed. Raises CommandError."""
    queue = target.open_queue()
    if queue is None:
        return None
    await opened.enter_async_context(aclosing(queue))
    await _attempt("look for its queues", _refuse_existing(queue.existing))
    opened.push_async_callback(_remove, queue.drop, ", ".join(queue.names))
    await _attempt("create its queues", queue.create())
    return queue


async def create_tables(target: DrillTarget, opened: AsyncExitStack) -> tuple[AdminStore, DrillTables]:
    """Create the tables of a drill; they are removed when `opened` is closed. Raises CommandError."""
    settings = target.settings.store
    await _attempt("look for its tables", _refuse_existing(target.store.existing))
    opened.push_async_callback(_remove, target.store.drop, describe_objects(target)[0])
    store = await opened.enter_async_context(aclosing(open_store(settings, ledger=settings.ledger)))
    tables = DrillTables(target)
    await _attempt("create its tables", store.schema.apply())
    await _attempt("create its tables", tables.create())
    return store, tables


async def _refuse_existing(find: Callable[[], Awaitable[Sequence[str]]]) -> None:
    if found := await find():
        raise CommandError(
            f"{found[0]} exists already, and a drill uses only what it creates; nothing was changed; run it again, "
            "which takes other names"
        )


async def _remove(drop: Callable[[], Awaitable[object]], what: str) -> None:
    """Remove what was created. A failure must not hide the result of the drill, so that it is only logged."""
    try:
        await drop()
    except PillarboxError as error:
        _log.warning("%s: could not be removed: %s; remove it yourself", what, error)


async def _attempt(what: str, work: Awaitable[object]) -> None:
    try:
        await work
    except (ConfigurationError, CommandError):
        raise
    except PillarboxError as error:
        raise CommandError(f"the drill cannot {what}: {error}") from error
