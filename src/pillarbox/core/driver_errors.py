"""What the exception of a database driver may tell: the server's primary message.

PostgreSQL's DETAIL and CONTEXT show whole rows, and SQLAlchemy adds the statement with its parameters: payloads that
must not reach a log line, a dead letter's error or a page. Drivers are recognised by what their exceptions carry, since
this package imports none of them.
"""

from __future__ import annotations

from collections.abc import Iterator

_MARKS = ("sqlstate", "pgcode", "sqlite_errorname")


def layers(error: BaseException) -> Iterator[BaseException]:
    """The exception, and the driver's own below SQLAlchemy's. Whoever raised it may have linked it to itself."""
    layer: BaseException | None = error
    seen: set[int] = set()
    while layer is not None and id(layer) not in seen:
        seen.add(id(layer))
        yield layer
        below = getattr(layer, "orig", None)
        layer = below if isinstance(below, BaseException) else layer.__cause__


def primary_text(error: BaseException) -> str:
    """What an exception says; of a database's, its first line only. Raises whatever its `__str__` raises."""
    layer, seen = error, {id(error)}
    while isinstance(below := getattr(layer, "orig", None), BaseException) and id(below) not in seen:
        layer = below
        seen.add(id(layer))
    if layer is error and not any(getattr(layer, mark, None) for mark in _MARKS):
        return str(error)
    return str(layer).partition("\n")[0]


def presentable(error: BaseException) -> BaseException | None:
    """The driver's own exception as the cause of ours, for tracebacks; None if it would show a row."""
    *_, innermost = layers(error)
    state = getattr(innermost, "sqlstate", None) or getattr(innermost, "pgcode", None) or ""
    # A unique violation shows its key only, which is the event's id.
    return None if state[:2] in ("22", "23") and state != "23505" else innermost
