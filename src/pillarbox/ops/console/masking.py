"""Masking of personal data on the server, before a page or a response is created.

    $.customer.email        this member
    $.items[*].name         of every item of a list
    $..email                wherever it is
    header:authorization    a header, by its name in any case
    text:[^ ]+@[^ ]+        matches of this regular expression in errors, headers and values of payloads

Keys, ids and names are links and filters: they are not masked. A rule without a match has no effect. With rules for
payloads, a payload that is not JSON is not shown. With `text:` rules, the first thousand characters of a text are
searched and shown, so that a search takes bounded time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from pillarbox.core.errors import ConfigurationError
from pillarbox.ops.console.json_text import Members, Node
from pillarbox.ops.console.rule_cost import MOST_WAYS, SEARCHED, ways

HIDDEN = "•••"
_REMEMBERED = 2048
"""Texts whose masked form is cached."""
_HEADER, _TEXT = "header:", "text:"
_ERROR_FIELDS = {"error", "last_error", "message", "reason", "text"}
"""Members of a response that contain errors."""
_STEP = re.compile(r"\.\.([^.\[\]*]+)|\.([^.\[\]*]+)|\[(\*|\d+)\]|\.(\*)")


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a path."""

    name: str
    """The name of a member, an index of a list, or `*` for all."""
    anywhere: bool = False
    """At any depth."""


class Masks:
    """Compiled masking rules. Raises ConfigurationError."""

    def __init__(self, rules: Sequence[str] = ()) -> None:
        headers = [rule for rule in rules if rule.lower().startswith(_HEADER)]
        texts = [rule for rule in rules if rule.lower().startswith(_TEXT)]
        self._headers = {rule[len(_HEADER) :].strip().lower() for rule in headers}
        self._patterns = [_pattern(rule) for rule in texts]
        self._paths = [_path(rule) for rule in rules if rule not in (*headers, *texts)]
        self.text = lru_cache(maxsize=_REMEMBERED)(self._text)
        """Mask an error or another text; None becomes ''."""

    @property
    def texts(self) -> bool:
        """Whether there are rules for texts."""
        return bool(self._patterns)

    @property
    def payloads(self) -> bool:
        """Whether there are rules for payloads."""
        return bool(self._paths or self._patterns)

    def headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        return {name: HIDDEN if name.lower() in self._headers else self.text(value) for name, value in headers.items()}

    def _text(self, text: str | None) -> str:
        shown = text or ""
        if self._patterns and len(shown) > SEARCHED:
            # Text that is not searched must not be shown.
            shown = f"{shown[:SEARCHED]}{HIDDEN}"
        for pattern in self._patterns:
            shown = pattern.sub(HIDDEN, shown)
        return shown

    def everywhere(self, value: Any) -> Any:
        """Mask every text of a JSON value."""
        match value:
            case str():
                return self.text(value)
            case dict():
                return {name: self.everywhere(one) for name, one in cast("dict[str, Any]", value).items()}
            case list():
                return [self.everywhere(one) for one in cast(list[object], value)]
            case _:
                return value

    def response(self, content: dict[str, Any]) -> dict[str, Any]:
        """Mask the errors in a response of the API."""
        return {name: self._masked_field(name, value) for name, value in content.items()}

    def payload(self, node: Node) -> Node:
        """Mask a document."""
        for path in self._paths:
            node = _masked(node, path)
        return self._searched(node) if self._patterns else node

    def _searched(self, node: Node) -> Node:
        match node:
            case Members(pairs):
                return Members([(name, self._searched(value)) for name, value in pairs])
            case list():
                return [self._searched(value) for value in node]
            case str() if (shown := self.text(node)) != node:
                return shown
            case _:
                return node

    def _masked_field(self, name: str, value: Any) -> Any:
        match value:
            case str() if name in _ERROR_FIELDS:
                return self.text(value)
            case dict():
                return self.response(cast("dict[str, Any]", value))
            case list():
                return [self._masked_field(name, one) for one in cast(list[object], value)]
            case _:
                return value


def _path(rule: str) -> tuple[Step, ...]:
    rest = rule.strip()
    if rest.startswith("$") and len(rest) > 1:
        steps = list(_steps(rest[1:]))
        if steps and "".join(text for text, _ in steps) == rest[1:]:
            return tuple(step for _, step in steps)
    raise ConfigurationError(
        f"console.mask: {rule!r} is not a rule; write $.customer.email, $.items[*].name, $..email, "
        "header:authorization or text:[^ ]+@[^ ]+"
    )


def _pattern(rule: str) -> re.Pattern[str]:
    try:
        pattern = re.compile(rule[len(_TEXT) :].strip())
        cost = ways(pattern.pattern)
    except (re.error, OverflowError) as error:
        raise ConfigurationError(f"console.mask: {rule!r} is not a rule: {error}") from None
    except RecursionError:
        raise ConfigurationError(
            f"console.mask: {rule[:80]!r}… is not a rule: its groups are nested too deeply"
        ) from None
    if cost > MOST_WAYS:
        raise ConfigurationError(
            f"console.mask: {rule!r} is not a rule: it takes too long on some texts; do not nest repeats, and "
            "write {1,64} or ++ instead of + if something follows"
        )
    if pattern.search(""):
        raise ConfigurationError(f"console.mask: {rule!r} is not a rule: it matches the empty text")
    return pattern


def _steps(text: str) -> Iterator[tuple[str, Step]]:
    for found in _STEP.finditer(text):
        anywhere, member, place, every = found.groups()
        yield found[0], Step(anywhere or member or place or every, anywhere=bool(anywhere))


def _masked(node: Node, path: Sequence[Step]) -> Node:
    if not path:
        return HIDDEN
    step, rest = path[0], path[1:]
    if isinstance(node, Members):
        return Members([(name, _below(value, step, rest, name)) for name, value in node.pairs])
    if isinstance(node, list):
        return [_below(value, step, rest, str(at)) for at, value in enumerate(node)]
    return node


def _below(value: Node, step: Step, rest: Sequence[Step], called: str) -> Node:
    if step.name in ("*", called):
        value = _masked(value, rest)
    return _masked(value, (step, *rest)) if step.anywhere else value
