"""Formatting of numbers and times for the pages. Control characters from events are escaped."""

from __future__ import annotations

from datetime import datetime

from markupsafe import Markup, escape

from pillarbox.admin.overview import Overview
from pillarbox.core.clock import timestamp
from pillarbox.core.statistics import COUNTED
from pillarbox.core.text import escaped
from pillarbox.core.text import plural as plural

_TAIL = 12

NOTHING = "\N{EN DASH}"
"""Shown instead of an unknown number."""


def clean(value: object) -> str:
    """A value as text that a page may show: control characters are written out; None is nothing."""
    return "" if value is None else escaped(str(value), keep="\t\n")


def tail(event_id: str) -> str:
    """An id for a list: what ids of one time have in common is left out in front."""
    return event_id if len(event_id) <= _TAIL + 1 else f"\N{HORIZONTAL ELLIPSIS}{event_id[-_TAIL:]}"


def commands(value: object) -> Markup:
    """A sentence in which what stands between backticks is a command."""
    said = [escape(piece) for piece in clean(value).split("`")]
    return Markup("").join(
        Markup("<code>{}</code>").format(piece) if at % 2 else piece for at, piece in enumerate(said)
    )


def sentence(text: str) -> str:
    """A sentence that begins in upper case, unless it begins with a name."""
    return text[:1].upper() + text[1:] if text.startswith(("no ", "every ", "the ")) else text


def iso(at: datetime) -> str:
    """In UTC, to the last digit."""
    return timestamp(at)


def span(seconds: float | None) -> str:
    """A time span in its two largest units."""
    if seconds is None:
        return NOTHING
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds % 1 else f"{seconds:.0f} s"
    for size, unit, smaller, small in ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= size:
            less = int(seconds % size // smaller)
            return f"{int(seconds // size)} {unit} {less} {small}" if less else f"{int(seconds // size)} {unit}"
    return ""


def ago(at: datetime | None, now: datetime) -> str:
    """How long before now, or how long until then."""
    if at is None:
        return ""
    away = (now - at).total_seconds()
    return f"{span(away)} ago" if away >= 0 else f"in {span(-away)}"


def due(at: datetime | None, now: datetime) -> str:
    """When something is to be done; what is late is due."""
    return "due" if at is None or at <= now else ago(at, now)


def number(count: float) -> str:
    return f"{count:,.0f}"


def at_most(count: int, most: int = COUNTED) -> str:
    """A count; one beyond `most` stands for that many or more."""
    return f"{most:,}+" if count > most else f"{count:,}"


def backlog(seen: Overview) -> str:
    """How many wait; an estimate says so."""
    if seen.exact:
        return number(seen.backlog)
    return at_most(seen.backlog) if seen.backlog == COUNTED + 1 else f"~{number(seen.backlog)}"


def rate(per_second: float | None) -> str:
    if per_second is None:
        return NOTHING
    return f"{per_second:,.1f}" if per_second < 10 else f"{per_second:,.0f}"
