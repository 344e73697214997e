"""`pillarbox` and what all of its commands share: one line per error on stderr, with the next step."""

from __future__ import annotations

import logging
from typing import Any

import click

from pillarbox.core.errors import ConfigurationError, PillarboxError
from pillarbox.ops.cli.context import Invocation
from pillarbox.ops.cli.exits import FAILURE, INTERRUPTED, USAGE, last_words
from pillarbox.ops.cli.lazy import LazyGroup
from pillarbox.telemetry.log_lines import log_to_stderr

COMMANDS = {
    "audit": "Who did what: list it.",
    "bench": "Measure a relay on your own store and transport.",
    "completion": "Print the completion script of a shell.",
    "config": "The settings: show them, check them.",
    "console": "Serve the web console until SIGTERM or SIGINT.",
    "consume": "Run a consumer of yours until told to stop.",
    "dead": "What was given up on: list it, group it, show it, export it, edit it, send it again, drop it.",
    "demo": "A small order service, handlers that fail and dawdle, a relay that may be killed, and a verdict.",
    "destinations": "How destinations fare; pause them, limit them, hold their breakers.",
    "doctor": "Examine settings, store, transports, guarantees and symptoms; each finding comes with its fix.",
    "events": "Events, wherever they are: list them, show one.",
    "inbox": "What consumers have admitted and met.",
    "keys": "Keys that stand still, and keys with the most to do.",
    "prune": "Drop what was done with longer ago than the settings keep it.",
    "record": "Record an event, or many.",
    "relay": "Carry events from the store to their destinations.",
    "relays": "The relays of this store: list them, ask them to drain.",
    "replay": "Send once more what was delivered, as new events.",
    "schema": "The tables of the store: print, apply, check.",
    "status": "Say whether events flow, and if not, why.",
    "tail": "Follow events as they move.",
    "top": "Watch rates, lag, lanes and destinations.",
}


class FriendlyGroup(LazyGroup):
    """Turns our errors into a line and an exit code; everything else stays a traceback, because it is a bug."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except PillarboxError as error:
            click.echo(f"pillarbox: {last_words(error)}", err=True)
            raise SystemExit(USAGE if isinstance(error, ConfigurationError) else FAILURE) from None
        except KeyboardInterrupt:
            click.echo("pillarbox: interrupted", err=True)
            raise SystemExit(INTERRUPTED) from None


@click.group(cls=FriendlyGroup, sentences=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pillarbox")
@click.option(
    "--config", "file", metavar="FILE", help="Settings; default: PILLARBOX_CONFIG, else ./pillarbox.toml if it exists."
)
@click.option("--set", "flags", metavar="KEY=VALUE", multiple=True, help="A setting, such as relay.batch_size=100.")
@click.option("-v", "--verbose", is_flag=True, help="Log everything, drivers included, on standard error.")
@click.pass_context
def pillarbox(context: click.Context, file: str | None, flags: tuple[str, ...], verbose: bool) -> None:
    """A transactional outbox: events leave with the transaction that made them, or not at all.

    The store is named by PILLARBOX_STORE (default: sqlite:///pillarbox.db), the way out by PILLARBOX_TRANSPORT, and
    everything else by pillarbox.toml or PILLARBOX_…; `pillarbox config show` tells what is in force and why.

    \b
    Example:
      PILLARBOX_STORE=postgresql://app@127.0.0.1:5432/shop pillarbox schema apply
      PILLARBOX_TRANSPORT=stdout:// pillarbox relay --until-empty
    """
    context.obj = Invocation(config=file, flags=dict(_pair(flag) for flag in flags), verbose=verbose)
    if verbose:
        log_to_stderr(logging.DEBUG)


def _pair(flag: str) -> tuple[str, str]:
    key, equals, value = flag.partition("=")
    if not equals:
        raise click.BadParameter("write KEY=VALUE, for example relay.batch_size=100", param_hint="--set")
    return key, value
