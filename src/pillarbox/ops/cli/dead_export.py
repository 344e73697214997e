"""`pillarbox dead export`: dead letters with payload and headers, one line of JSON each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pillarbox.admin.dead_letters import DeadLetterFilter
from pillarbox.ops import exports
from pillarbox.ops.cli.parameters import dead_letter_options

if TYPE_CHECKING:
    from pillarbox.admin.admin import AdminStore


@click.command()
@dead_letter_options
def export(**filters: Any) -> None:
    """Print all matching dead letters, the newest first: one line of JSON each, with payload and headers.

    \b
    Example:
      pillarbox dead export --destination orders > orders.ndjson
    """
    from pillarbox.ops.cli.store_access import with_shared_store
    from pillarbox.ops.dead_letter_export import lines

    async def print_all(store: AdminStore) -> None:
        async for line in lines(store, DeadLetterFilter(**filters), exports.content):
            click.echo(line, nl=False)

    with_shared_store(print_all)
