"""Exit codes: 0 ok, 1 failure, 2 usage, 3 threshold exceeded, 4 not found, 5 void, 130 interrupted."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import IO, Any

import click

from pillarbox.core.text import escaped

FAILURE = 1
USAGE = 2
EXCEEDED = 3
NOT_FOUND = 4
VOID = 5
"""A drill in which no fault took effect."""
INTERRUPTED = 130


class NotFoundError(click.ClickException):
    """The requested object does not exist."""

    exit_code = NOT_FOUND

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"pillarbox: {self.message}", err=True)


def confirm(question: str, *, yes: bool, lines: Iterable[str] = ()) -> None:
    """Ask the operator for confirmation, unless `yes`. Raises UsageError if there is no terminal.

    lines: what the action would change, printed before the question.
    """
    if yes:
        return
    for line in lines:
        click.echo(escaped(line), err=True)
    if not sys.stdin.isatty():
        options = {option.name for option in click.get_current_context().command.params}
        preview = ", or --dry-run to count only" if "dry_run" in options else ""
        raise click.UsageError(f"{question} There is no terminal for the confirmation: pass --yes to confirm{preview}.")
    try:
        confirmed = click.confirm(question, err=True)
    except click.Abort:
        raise KeyboardInterrupt from None
    if not confirmed:
        raise click.Abort


yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Count the matches and change nothing.")
