"""The command `pillarbox`: global options, and one line per error on standard error."""

from __future__ import annotations

import errno
import os
import sys
from typing import Any

import click

from pillarbox.core.errors import ConfigurationError, PillarboxError, StoreUnavailableError
from pillarbox.ops.cli.context import Invocation
from pillarbox.ops.cli.exits import FAILURE, INTERRUPTED, USAGE
from pillarbox.ops.cli.lazy import LazyGroup

COMMANDS = {
    "audit": "Show what operators did.",
    "bench": "Measure a relay on your store and transport.",
    "completion": "Print the completion script of a shell.",
    "config": "Show and check the settings.",
    "console": "Serve the web console until SIGTERM or SIGINT.",
    "consume": "Run one of your consumers until SIGTERM or SIGINT.",
    "dead": "List, group, show, export, edit, retry and discard dead letters.",
    "demo": "Run an order service with failing handlers and a relay that is killed, then verify that nothing was lost.",
    "destinations": "List, show, pause, resume and rate-limit destinations; force their circuit breakers.",
    "doctor": "Check settings, store, transports, guarantees and symptoms, and name a fix for each finding.",
    "drill": "Kill, freeze and drain relays under load on your store and transport, then verify every guarantee.",
    "events": "List, count and show events; retry, reschedule and discard pending ones; erase aggregates.",
    "exporter": "Serve metrics and health of the store until SIGTERM or SIGINT.",
    "inbox": "Show per-consumer inbox statistics.",
    "keys": "Show blocked and busiest ordering keys.",
    "prune": "Delete data past its retention period.",
    "record": "Record one event, or many from a file.",
    "relay": "Run a relay, which sends events to their destinations.",
    "relays": "List and drain relays.",
    "replay": "Send delivered events again, as new events.",
    "schema": "Print, apply and check the tables of the store.",
    "status": "Show whether events flow and, if not, why.",
    "tail": "Follow events as they are recorded, retried, delivered and dead-lettered.",
    "top": "Show rates, lag, lanes and destinations, refreshed until Ctrl-C.",
}


def is_unreachable(error: PillarboxError) -> bool:
    """Whether no connection to the store could be opened."""
    return isinstance(error, StoreUnavailableError) and error.unreachable


def _next_step(context: click.Context) -> str:
    """What to check if the store cannot be reached, with the place of its address."""
    where = context.ensure_object(Invocation).settings.origin("store", "url").name
    return f"; check that the server runs, and the address in {where or 'PILLARBOX_STORE or DATABASE_URL'}"


class FriendlyGroup(LazyGroup):
    """Turn the library's errors into one line and an exit code. Any other exception is a bug and stays a traceback."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        for argument in args:
            try:
                argument.encode()
            except UnicodeEncodeError:  # Python holds bytes that it cannot decode as lone surrogates
                ctx.fail(
                    f"the argument {argument!a} is not valid {sys.getfilesystemencoding()}: write it in the encoding "
                    "of your locale"
                )
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except PillarboxError as error:
            click.echo(f"pillarbox: {error}{_next_step(ctx) if is_unreachable(error) else ''}", err=True)
            raise SystemExit(USAGE if isinstance(error, ConfigurationError) else FAILURE) from None
        except KeyboardInterrupt:
            click.echo("pillarbox: interrupted", err=True)
            raise SystemExit(INTERRUPTED) from None
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            # What is still buffered would fail again at the end of the process.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            click.echo("pillarbox: the output could not be written: no space left on its device", err=True)
            raise SystemExit(FAILURE) from None


@click.group(cls=FriendlyGroup, summaries=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pillarbox")
@click.option(
    "--config",
    "file",
    metavar="FILE",
    help="Settings file; default: PILLARBOX_CONFIG, else ./pillarbox.toml.",
)
@click.option(
    "--set",
    "flags",
    metavar="KEY=VALUE",
    multiple=True,
    help="Override a setting; repeatable.",
)
@click.option("-v", "--verbose", is_flag=True, help="Log everything, drivers included, on standard error.")
@click.pass_context
def pillarbox(context: click.Context, file: str | None, flags: tuple[str, ...], verbose: bool) -> None:
    """Operate a transactional outbox: run relays, inspect events, decide about dead letters.

    PILLARBOX_STORE is the address of the store (default: DATABASE_URL, else sqlite:///pillarbox.db),
    PILLARBOX_TRANSPORT the address of the transport. Other settings come from pillarbox.toml or PILLARBOX_…;
    `pillarbox config show` lists each value and its origin.

    \b
    Example:
      PILLARBOX_STORE=postgresql://app@127.0.0.1:5432/shop pillarbox schema apply
      PILLARBOX_TRANSPORT=stdout:// pillarbox relay --until-empty
    """
    context.obj = Invocation(config=file, flags=dict(_pair(flag) for flag in flags), verbose=verbose)
    if verbose:
        from pillarbox.telemetry.log_lines import LogOptions

        LogOptions(level="DEBUG", events=True).apply()


def _pair(flag: str) -> tuple[str, str]:
    key, equals, value = flag.partition("=")
    if not equals:
        raise click.BadParameter("write KEY=VALUE, for example relay.batch_size=100", param_hint="--set")
    return key, value
