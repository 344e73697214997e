"""What people write behind options: times, ages, headers, positions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

import click

from pillarbox.core.clock import seconds
from pillarbox.core.errors import ConfigurationError
from pillarbox.ops import moments

if TYPE_CHECKING:
    from pillarbox.admin.listing import Position

F = TypeVar("F", bound=Callable[..., object])

FOREVER = "forever"

NUMBER = click.IntRange(0, 2**63 - 1)
"""Of a dead letter, an entry, a replay: as large as a store counts."""


def age(text: str) -> float:
    """A duration in seconds."""
    try:
        return seconds(text)
    except ConfigurationError:
        raise click.BadParameter(f"{text!r} is no duration; write for example 500ms, 2s, 1h or 7 days") from None


def retention(text: str) -> float:
    """A duration in seconds; infinity for `forever`."""
    return float("inf") if text == FOREVER else age(text)


def moment(text: str) -> datetime:
    """A time, or an age counted back from now."""
    try:
        return moments.moment(text)
    except ConfigurationError as error:
        raise click.BadParameter(str(error)) from None


def header(text: str) -> tuple[str, str]:
    """A name and a value."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise click.BadParameter(f"{text!r}: write NAME=VALUE")
    return name, value


def fingerprint(text: str) -> str:
    """A group of dead letters."""
    from pillarbox.ops.grouping import is_fingerprint

    if not is_fingerprint(text):
        raise click.BadParameter(f"{text!r} is no group: take it from `pillarbox dead groups`")
    return text


def rate(text: str) -> float:
    """So many a second."""
    from pillarbox.relay.routing import per_second

    try:
        return per_second(text)
    except ConfigurationError:
        raise click.BadParameter(f"{text!r} is no rate above zero; write for example 500/s, 30/m or 1000/h") from None


def position(text: str) -> Position:
    """A position in a list of events."""
    from pillarbox.admin.listing import Position

    try:
        return Position.parse(text)
    except ConfigurationError as error:
        raise click.BadParameter(str(error)) from None


until_option = click.option("--until", type=moment, metavar="TIME", help="An age such as 1h, or a time in UTC.")
since_option = click.option("--since", type=moment, metavar="TIME", help="An age such as 1h, or a time in UTC.")
limit_option = click.option(
    "--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="The most to show."
)


def event_options(command: F) -> F:
    """The options by which events are chosen."""
    for option in (
        click.option("--error", metavar="TEXT", help="Only where the last error contains this text."),
        click.option("--until", type=moment, metavar="TIME", help="Recorded before then; as --since."),
        since_option,
        click.option("--retrying", is_flag=True, help="Only those that wait after a send that failed."),
        click.option("--aggregate", metavar="TYPE[:ID]", help="Of this aggregate, such as ORDER or ORDER:42."),
        click.option("--destination", metavar="NAME", help="Only on their way to this destination."),
        click.option("--key", help="Exactly this key, such as ORDER:42."),
        click.option("--type", "event_type", metavar="TYPE", help="Exactly this event type."),
    ):
        command = option(command)
    return command


def letter_options(command: F) -> F:
    """The options by which dead letters are chosen."""
    for option in (
        click.option("--error", metavar="TEXT", help="Only where the error contains this text."),
        since_option,
        click.option("--destination", metavar="NAME", help="Only those for this destination."),
        click.option("--key", help="Exactly this key, such as ORDER:42."),
        click.option("--type", "event_type", metavar="TYPE", help="Exactly this event type."),
    ):
        command = option(command)
    return command
