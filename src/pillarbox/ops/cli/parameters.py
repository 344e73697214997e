"""Parse the values of options: times, ages, headers, cursors."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

import click

from pillarbox.admin.states import EventState
from pillarbox.core.clock import seconds
from pillarbox.core.errors import ConfigurationError
from pillarbox.ops import times

if TYPE_CHECKING:
    from pillarbox.admin.listing import Position

F = TypeVar("F", bound=Callable[..., object])

FOREVER = "forever"

NUMBER = click.IntRange(0, 2**63 - 1)
"""The number of a dead letter, an audit entry or a replay: a 64-bit integer."""


def age(text: str) -> float:
    """Parse a duration; returns seconds."""
    try:
        return seconds(text)
    except ConfigurationError as error:
        raise click.BadParameter(str(error).removeprefix("duration: ")) from None


def retention(text: str) -> float:
    """Parse a duration; returns seconds, infinity for `forever`."""
    return float("inf") if text == FOREVER else age(text)


def moment(text: str) -> datetime:
    """Parse a time, or an age before now."""
    try:
        return times.parse_time(text)
    except ConfigurationError as error:
        raise click.BadParameter(str(error)) from None


def header(text: str) -> tuple[str, str]:
    """Parse NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise click.BadParameter(f"{text!r} is not a header; write NAME=VALUE")
    return name, value


def fingerprint(text: str) -> str:
    """Parse the fingerprint of a group of dead letters."""
    from pillarbox.ops.dead_letter_groups import is_fingerprint

    if not is_fingerprint(text):
        raise click.BadParameter(f"{text!r} is not a group; `pillarbox dead groups` lists them")
    return text


def rate(text: str) -> float:
    """Parse a rate; returns messages per second."""
    from pillarbox.relay.routing import per_second

    try:
        return per_second(text)
    except ConfigurationError:
        raise click.BadParameter(f"{text!r} is not a rate above zero; write for example 500/s or 30/m") from None


def position(text: str) -> Position:
    """Parse the cursor of a page."""
    from pillarbox.admin.listing import Position

    try:
        return Position.parse(text)
    except ConfigurationError as error:
        raise click.BadParameter(str(error)) from None


until_option = click.option("--until", type=moment, metavar="TIME", help="Older than an age (1h) or before a UTC time.")
since_option = click.option("--since", type=moment, metavar="TIME", help="Newer than an age (1h) or since a UTC time.")
limit_option = click.option(
    "--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Rows to show at most."
)


def _state(context: click.Context, option: click.Parameter, value: str | None) -> EventState | None:
    return None if value is None else EventState(value)


def event_options(command: F) -> F:
    """Add the options that select events."""
    for option in (
        click.option("--error", metavar="TEXT", help="Only if the last error contains this text; case-sensitive."),
        click.option("--until", type=moment, metavar="TIME", help="Recorded before this age or time."),
        since_option,
        click.option(
            "--state",
            type=click.Choice([state.value for state in EventState]),
            callback=_state,
            help="Only events in this state.",
        ),
        click.option("--aggregate", metavar="TYPE[:ID]", help="Only this aggregate, such as ORDER or ORDER:42."),
        click.option("--destination", metavar="NAME", help="Only this destination."),
        click.option("--key", help="Only this key, such as ORDER:42."),
        click.option("--type", "event_type", metavar="TYPE", help="Only this event type."),
    ):
        command = option(command)
    return command


def dead_letter_options(command: F) -> F:
    """Add the options that select dead letters."""
    for option in (
        click.option("--error", metavar="TEXT", help="Only if the error contains this text; case-sensitive."),
        since_option,
        click.option("--destination", metavar="NAME", help="Only this destination."),
        click.option("--key", help="Only this key, such as ORDER:42."),
        click.option("--type", "event_type", metavar="TYPE", help="Only this event type."),
    ):
        command = option(command)
    return command
