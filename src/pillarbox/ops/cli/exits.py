"""How commands end: 0 ok, 1 failure, 2 usage, 3 threshold exceeded, 4 not found, 130 interrupted."""

from __future__ import annotations

import sys
from typing import IO, Any

import click

from pillarbox.core.errors import PillarboxError

FAILURE = 1
USAGE = 2
EXCEEDED = 3
NOT_FOUND = 4
INTERRUPTED = 130


class NotFound(click.ClickException):
    """What was asked for is not there."""

    exit_code = NOT_FOUND

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"pillarbox: {self.message}", err=True)


def last_words(error: PillarboxError) -> str:
    """What a command says that ends with an error: nothing is tried again, whatever a relay would do."""
    return str(error)


def confirm(question: str, *, yes: bool) -> None:
    """Go on only if a person says so, or said so beforehand; without a terminal there is nobody to ask."""
    if yes:
        return
    if not sys.stdin.isatty():
        options = {option.name for option in click.get_current_context().command.params}
        look = ", or --dry-run to look" if "dry_run" in options else ""
        raise click.UsageError(f"{question} There is no terminal to ask on: pass --yes to go on{look}.")
    click.confirm(question, abort=True, err=True)


yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Say how many it would be, and change nothing.")
