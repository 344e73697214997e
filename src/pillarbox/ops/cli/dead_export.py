"""`pillarbox dead export`: dead letters with all they carry, as lines of JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pillarbox.admin.dead_letters import DeadLetterFilter
from pillarbox.ops import exports
from pillarbox.ops.cli.parameters import letter_options

if TYPE_CHECKING:
    from pillarbox.admin.admin import AdminStore


@click.command()
@letter_options
def export(**filters: Any) -> None:
    """Print every dead letter that fits, the newest first: a line of JSON each, with payload and headers.

    \b
    Example:
      pillarbox dead export --destination orders > orders.ndjson
    """
    from pillarbox.ops.cli.working import with_shared_store
    from pillarbox.ops.letter_lines import lines

    async def print_all(store: AdminStore) -> None:
        async for line in lines(store, DeadLetterFilter(**filters), exports.content):
            click.echo(line, nl=False)

    with_shared_store(print_all)
