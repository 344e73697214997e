"""`pillarbox config`: what is in force and where it comes from, and whether it can work."""

from __future__ import annotations

from typing import Any, cast

import click

from pillarbox.core.errors import ConfigurationError
from pillarbox.core.text import safe_json
from pillarbox.ops.cli.context import current_settings
from pillarbox.ops.cli.output import print_json

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")


@click.group()
def config() -> None:
    """Show and check the settings.

    \b
    Examples:
      pillarbox config show
      pillarbox --config shop.toml config check
    """


@config.command("show")
@as_json
def show(as_json: bool) -> None:
    """Show every effective setting and its origin. Passwords are masked."""
    entries = current_settings().entries
    if as_json:
        listed = [{"key": entry.name, "value": _plain(entry.shown), "origin": str(entry.origin)} for entry in entries]
        print_json({"settings": listed})
        return
    lines = [(f"{entry.name} = {safe_json(_plain(entry.shown))}", entry) for entry in entries]
    width = min(max(len(line) for line, _ in lines), 60)
    for line, entry in lines:
        click.echo(f"{line:<{width}}  # {entry.origin}")


@config.command("check")
@as_json
def check(as_json: bool) -> None:
    """Validate the settings without connecting; exit with 2 and name each error if a relay cannot start."""
    try:
        notes = _checked()
    except ConfigurationError as error:
        if as_json:
            print_json({"ok": False, "problems": str(error).splitlines(), "notes": []})
            raise SystemExit(2) from None
        raise
    if as_json:
        print_json({"ok": True, "problems": [], "notes": notes})
        return
    for note in notes:
        click.echo(f"note: {note}")
    click.echo("the settings are valid")


def _checked() -> list[str]:
    from pillarbox.ops.wiring import make_outbox, make_relay, open_store, open_transports

    settings = current_settings()
    store = open_store(settings.store)
    make_outbox(settings)
    if settings.transports:
        make_relay(settings, store=store, transports=open_transports(settings))
        return list(settings.notes)
    return [
        *settings.notes,
        "no transport is configured: events can be recorded, but not sent; set PILLARBOX_TRANSPORT or [transports]",
    ]


def _plain(value: Any) -> Any:
    return list(cast("tuple[object, ...]", value)) if isinstance(value, tuple) else value
