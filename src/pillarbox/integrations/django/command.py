"""`manage.py pillarbox …`: the commands of `pillarbox`, with the settings of Django.

Standard options of Django stay Django's (`--settings`, `--verbosity`, …); all others belong to the command.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from django.core.management.base import BaseCommand, CommandError, CommandParser

from pillarbox.integrations.django.configuration import load_settings
from pillarbox.integrations.django.relay import manage_connections

try:
    import click
except ImportError as missing:  # pragma: no cover - shown by the test of the bare wheel
    raise CommandError('the commands need click: pip install "pillarbox[django]"') from missing

from pillarbox.ops.cli.context import Invocation
from pillarbox.ops.cli.root import COMMANDS, FriendlyGroup
from pillarbox.ops.settings import Settings

_ELSEWHERE = ("completion", "demo")
"""Commands that have nothing to do with a project of Django."""
_EXPLAINED = ("doctor", "inbox", "relay", "relays", "status")
"""Commands whose output names other commands. The output of all others may contain payloads, and is not changed."""
_EPILOG = "Options of every command: --database ALIAS (default: PILLARBOX['database']), --set KEY=VALUE, --verbosity 2."


@dataclass(kw_only=True)
class DjangoInvocation(Invocation):
    """An invocation with the settings of Django."""

    database: str | None = None
    calls_handlers: bool = False

    @cached_property
    def settings(self) -> Settings:
        settings = load_settings(self.database, self.flags, self.spelt)
        if self.calls_handlers:
            manage_connections(settings)
        return settings


class _Renaming:
    """A stream on which `pillarbox …` is a command of `manage.py`: without it, it would not have Django's settings."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        written: int = self._stream.write(text.replace("`pillarbox ", "`manage.py pillarbox "))
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class PassThrough(BaseCommand):
    """A command of Django that passes its arguments to commands of `pillarbox`."""

    command: tuple[str, ...] = ()
    """What stands before the arguments: the name of one command; (): any."""

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        # Without abbreviations: --set would be read as --settings. Without help: that of the command is shown.
        parser = super().create_parser(prog_name, subcommand, add_help=False, allow_abbrev=False, **kwargs)
        _collect_unknown(parser)
        return parser

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--database", metavar="ALIAS")
        parser.add_argument("--set", dest="flags", metavar="KEY=VALUE", action="append", default=[])

    def handle(self, *args: str, **options: Any) -> None:
        arguments, verbose = [*self.command, *args], int(options["verbosity"]) > 1
        invocation = DjangoInvocation(
            database=options["database"],
            flags=dict(_pair(flag) for flag in options["flags"]),
            verbose=verbose,
            calls_handlers=arguments[:1] == ["relay"],
        )
        with ExitStack() as redirected:
            # What `call_command` was given; click writes to the streams of the process.
            out, err = options.get("stdout") or sys.stdout, options.get("stderr") or sys.stderr
            explains = arguments[:1] and arguments[0] in _EXPLAINED
            redirected.enter_context(redirect_stdout(cast(Any, _Renaming(out)) if explains else out))
            redirected.enter_context(redirect_stderr(cast(Any, _Renaming(err))))
            if verbose:
                from pillarbox.telemetry.log_lines import LogOptions

                LogOptions(level="DEBUG", events=True).apply()
            code = _run(arguments, invocation)
        if code:
            raise SystemExit(code)


def _run(arguments: Sequence[str], invocation: DjangoInvocation) -> int:
    """Run a command; returns its exit code."""
    summaries = {name: text for name, text in COMMANDS.items() if name not in _ELSEWHERE}
    group = FriendlyGroup("pillarbox", summaries=summaries, help="Operate the outbox of this project.", epilog=_EPILOG)
    try:
        result = group.main(list(arguments), prog_name="manage.py pillarbox", standalone_mode=False, obj=invocation)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        click.echo("Aborted!", err=True)
        return 1
    return result if isinstance(result, int) else 0


def _collect_unknown(parser: ArgumentParser) -> None:
    """Let the parser return what it does not know as `args`, in order."""
    known = parser.parse_known_args

    def parse_args(args: Sequence[str] | None = None, namespace: Namespace | None = None) -> Namespace:
        found, rest = known(args, namespace or Namespace())
        found.args = rest
        return found

    parser.parse_args = parse_args  # type: ignore[method-assign,assignment]  # argparse has no such mode


def _pair(flag: str) -> tuple[str, str]:
    key, equals, value = flag.partition("=")
    if not equals:
        raise CommandError(f"--set {flag}: write KEY=VALUE, for example relay.batch_size=100", returncode=2)
    return key, value
