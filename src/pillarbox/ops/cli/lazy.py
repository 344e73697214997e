"""Commands that are imported when they are called: help is there at once, whatever a relay needs to run."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module

import click


class LazyGroup(click.Group):
    """A group that knows its commands by name and a sentence; command `x` is `x` in the module `x` beside this one."""

    def __init__(self, *args: object, sentences: Mapping[str, str], **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]  # passed on as they came
        self._sentences = sentences

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self._sentences)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._sentences:
            return None
        command: click.Command = getattr(import_module(f"pillarbox.ops.cli.{cmd_name}"), cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self._sentences and (near := get_close_matches(args[0], self._sentences, n=1)):
            ctx.fail(f"there is no command {args[0]!r}; did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._sentences[name]) for name in self.list_commands(ctx)])
