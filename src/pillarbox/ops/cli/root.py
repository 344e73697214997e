"""`pillarbox` and what all of its commands share: one line per error on stderr, with the next step."""

from __future__ import annotations

from typing import Any

import click

from pillarbox.core.errors import ConfigurationError, PillarboxError
from pillarbox.ops.cli.relay import relay
from pillarbox.ops.cli.schema import schema
from pillarbox.ops.cli.status import status

USAGE = 2


class FriendlyGroup(click.Group):
    """Turns our errors into a line and an exit code; everything else stays a traceback, because it is a bug."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except PillarboxError as error:
            click.echo(f"pillarbox: {error}", err=True)
            raise SystemExit(USAGE if isinstance(error, ConfigurationError) else 1) from None


@click.group(cls=FriendlyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pillarbox")
def pillarbox() -> None:
    """A transactional outbox: events leave with the transaction that made them, or not at all.

    The store is named by PILLARBOX_STORE (default: sqlite:///pillarbox.db), the way out by PILLARBOX_TRANSPORT.

    \b
    Example:
      PILLARBOX_STORE=postgresql://app@127.0.0.1:5432/shop pillarbox schema apply
      PILLARBOX_TRANSPORT=console:// pillarbox relay --until-empty
    """


pillarbox.add_command(relay)
pillarbox.add_command(schema)
pillarbox.add_command(status)
