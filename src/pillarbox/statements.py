"""Names of tables, and the named SQL statements of themed files, rendered as they are sent.

A themed file holds many statements. Each begins with a line `-- name: fetch_ready`, then a comment with a sentence of
purpose. A fragment, `-- fragment: columns`, is part of other statements. In the text, `{message}` is the quoted name of
a table, and `{columns}` the fragment of that name. `{columns:m.}` fills every `{row}` of the fragment with `m.`,
`{columns:row}` with the `{row}` around it; without an argument `{row}` is empty. `{ago:older}` fills every
`{parameter}` of the fragment with `older`, or with a number. A fragment may be empty: an engine may need nothing there.

Comment lines of three kinds may follow the purpose. They fill holes with a fragment of that name, else with that text:

    -- with: progress=true                        always, unless a caller or a variant fills the hole
    -- variant ledger: ledger=ledger_delivered    where a caller asks for the variant; otherwise the hole is empty
    -- example: number=7                          where an operator reads the statement; a caller must fill the hole

Names are validated once and always quoted, so that a prefix or a schema cannot inject SQL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from importlib.resources.abc import Traversable

from pillarbox.core.errors import ConfigurationError

DEFAULT_PREFIX = "outbox_"
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
LONGEST_IDENTIFIER = 63
# The longest thing derived from a prefix: a day of history and its index.
LONGEST_SUFFIX = len("history_20261231_event_id_idx")

TABLES = (
    "message",
    "history",
    "dead_letter",
    "lane",
    "relay",
    "destination",
    "attempt",
    "sample",
    "request",
    "audit",
    "schema",
    "event",
    "ledger",
    "inbox",
    "inbox_statistics",
)
_HOLE = re.compile(r"\{([a-z_0-9]+)(?::([a-z]+\.|[a-z_0-9]+))?\}")
_HEADING = re.compile(r"-- (name|fragment): ([a-z][a-z0-9_]*)")
_DEEPEST = 10
_VALUES = re.compile(r"-- (with|example|variant ([a-z_]+)):((?: [a-z_]+=\S+)+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Where the tables live: a prefix and, on PostgreSQL, a schema.

    Raises ConfigurationError for anything that is not a plain identifier or grows beyond 63 bytes.
    """

    prefix: str = DEFAULT_PREFIX
    schema: str | None = None

    def __post_init__(self) -> None:
        _check("prefix", self.prefix, LONGEST_IDENTIFIER - LONGEST_SUFFIX)
        if self.schema is not None:
            _check("schema", self.schema, LONGEST_IDENTIFIER)

    @property
    def stem(self) -> str:
        """What stands before the names of compatibility views, such as `event_outbox`."""
        return self.prefix.removesuffix(DEFAULT_PREFIX)

    @property
    def aliases(self) -> dict[str, str]:
        """Placeholder → name of what `schema apply --aliases` adds under names that other outboxes use."""
        return {
            "events_alias": f"{self.stem}outbox_events",
            "outbox_alias": f"{self.stem}event_outbox",
            "outbox_dlq": f"{self.stem}event_outbox_dlq",
            "outbox_archive": f"{self.stem}event_outbox_archive",
            "outbox_moved": f"{self.stem}event_outbox_moved",
            "integration_event": f"{self.prefix}integration_event",
            "processed_event": f"{self.stem}processed_event",
        }

    @property
    def channel(self) -> str:
        """The wake-up channel: one per outbox of a database, and so also the outbox's name for its locks."""
        own = f"{self.prefix}wakeup"
        if self.schema is None:
            return own
        if len(full := f"{self.schema}.{own}") <= LONGEST_IDENTIFIER:
            return full
        return f"{blake2b(self.schema.encode(), digest_size=8).hexdigest()}.{own}"

    def qualified(self, name: str) -> str:
        """`name` quoted, and qualified with the schema where there is one."""
        return f'"{self.schema}"."{name}"' if self.schema else f'"{name}"'

    def placeholders(self) -> dict[str, str]:
        """What `{message}` and its like stand for."""
        return {
            **{table: self.qualified(self.prefix + table) for table in TABLES},
            "schema_name": f'"{self.schema}"' if self.schema else "",
            "prefix": self.prefix,
            "stem": self.stem,
            "channel": self.channel,
        }


def _check(field: str, value: str, longest: int) -> None:
    if not IDENTIFIER.fullmatch(value):
        raise ConfigurationError(
            f"{field} {value!r} is not a plain identifier: use A to Z, a to z, digits and underscores, "
            "and do not begin with a digit"
        )
    if len(value) > longest:
        raise ConfigurationError(f"{field} {value!r} is too long: at most {longest} characters")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedStatement:
    """A named statement, or a fragment of statements, as a themed file has it."""

    name: str
    theme: str
    """The name of its file."""
    purpose: str
    text: str
    is_fragment: bool = False
    values: Mapping[str, str] = field(default_factory=dict[str, str])
    variants: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    examples: Mapping[str, str] = field(default_factory=dict[str, str])


@cache
def text(package: str, path: str) -> str:
    """The file `sql/<path>.sql` of a package, as it is written."""
    return (files(package) / "sql" / f"{path}.sql").read_text(encoding="utf-8")


@cache
def load_statements(package: str, *themes: str) -> Mapping[str, NamedStatement]:
    """Name → statement, of these themed files in the folder `sql` of a package, or of all files there.

    Raises ValueError for a name that is defined twice, and for SQL without a name or a purpose.
    """
    if not themes:
        found = (entry.name for entry in (files(package) / "sql").iterdir())
        themes = tuple(sorted(name.removesuffix(".sql") for name in found if name.endswith(".sql")))
    statements: dict[str, NamedStatement] = {}
    for theme in themes:
        for statement in _parsed(text(package, theme), theme):
            _add(statements, statement)
    return statements


def _add(statements: dict[str, NamedStatement], statement: NamedStatement) -> None:
    if (other := statements.get(statement.name)) is not None:
        raise ValueError(
            f"the SQL statement {statement.name!r} is defined twice, in {other.theme}.sql and {statement.theme}.sql: "
            "rename one of them"
        )
    statements[statement.name] = statement


def _parsed(script: str, theme: str) -> Iterator[NamedStatement]:
    lines = iter(script.splitlines())
    blocks: list[tuple[re.Match[str], list[str]]] = []
    for line in lines:
        if heading := _HEADING.fullmatch(line):
            blocks.append((heading, []))
        elif blocks:
            blocks[-1][1].append(line)
        elif line.strip() and not line.startswith("--"):
            raise ValueError(f"{theme}.sql: SQL before the first `-- name:` line: {line!r}; give it a name")
    for heading, block in blocks:
        yield _statement(heading[2], theme, block, is_fragment=heading[1] == "fragment")


def _statement(name: str, theme: str, lines: list[str], *, is_fragment: bool) -> NamedStatement:
    purpose: list[str] = []
    values: dict[str, str] = {}
    examples: dict[str, str] = {}
    variants: dict[str, dict[str, str]] = {}
    while lines and lines[0].startswith("--"):
        line = lines.pop(0)
        if given := _VALUES.fullmatch(line):
            pairs = dict(pair.split("=", 1) for pair in given[3].split())
            own = {"with": values, "example": examples}.get(given[1])
            (variants.setdefault(given[2], {}) if own is None else own).update(pairs)
        else:
            purpose.append(line.removeprefix("--").strip())
    body = "\n".join(lines).strip().removesuffix(";")
    if not purpose or not (body or is_fragment):
        raise ValueError(f"{theme}.sql: {name!r} has no purpose or no SQL: write a comment, then the statement")
    return NamedStatement(
        name=name,
        theme=theme,
        purpose=" ".join(purpose),
        text=body,
        is_fragment=is_fragment,
        values=values,
        variants=variants,
        examples=examples,
    )


def unknown(name: str, names: Sequence[str]) -> str:
    """What to tell of a name that none of these statements has."""
    nearest = get_close_matches(name, names, n=1)
    hint = f"did you mean {nearest[0]!r}?" if nearest else "`pillarbox schema statements` lists the names"
    return f"there is no SQL statement {name!r}: {hint}"


class StatementSet:
    """The statements of themed files, rendered for one outbox."""

    def __init__(self, names: Names, *loaded: Mapping[str, NamedStatement], **values: str) -> None:
        """`values` fill holes of any statement. Raises ValueError if a name is defined twice."""
        self.names = names
        self._known = names.placeholders() | values
        self._statements: dict[str, NamedStatement] = {}
        for statements in loaded:
            for statement in statements.values():
                if statement.is_fragment and statement.name in self._known:
                    raise ValueError(
                        f"{statement.theme}.sql: the fragment {statement.name!r} is named like a table: rename it"
                    )
                _add(self._statements, statement)
        self._ready: dict[str, str] = {}

    def get(self, name: str, /, *variants: str, **values: str) -> str:
        """A statement as it is sent; `values` are texts for its holes.

        Raises LookupError if the statement, the variant or what a hole asks for does not exist.
        """
        if variants or values:
            return self._rendered(name, variants, values)
        if (ready := self._ready.get(name)) is None:
            ready = self._ready[name] = self._rendered(name, (), {})
        return ready

    def render(self, script: str, **values: str) -> str:
        """A script with names and fragments filled in; unknown braces stay as they are."""
        return self._filled(script, _Filling(values, {}, strict=False), "")

    def read_migrations(self, *folders: Traversable) -> dict[int, tuple[str, str]]:
        """Version → (name, SQL) of the files `0001_name.sql` in these folders, in order."""
        found = {entry.name: entry for folder in folders for entry in folder.iterdir() if entry.name.endswith(".sql")}
        return {
            int(name[:4]): (name.removesuffix(".sql"), self.render(found[name].read_text(encoding="utf-8")))
            for name in sorted(found)
        }

    def listed(self) -> list[NamedStatement]:
        """Every statement that can be sent, by theme and name."""
        found = [statement for statement in self._statements.values() if not statement.is_fragment]
        return sorted(found, key=lambda statement: (statement.theme, statement.name))

    def shown(self, name: str, /, *variants: str) -> str:
        """A statement as it is sent, with examples of what a caller fills."""
        statement = self._find(name)
        declared = {**statement.examples, **_declared(statement, variants)}
        return self._filled(statement.text, _Filling({}, declared, strict=False, examples=True), "")

    def _find(self, name: str) -> NamedStatement:
        statement = self._statements.get(name)
        if statement is None or statement.is_fragment:
            raise LookupError(unknown(name, [one.name for one in self.listed()]))
        return statement

    def _rendered(self, name: str, variants: tuple[str, ...], values: Mapping[str, str]) -> str:
        statement = self._find(name)
        return self._filled(statement.text, _Filling(values, _declared(statement, variants), within=name), "")

    def _filled(self, sql: str, filling: _Filling, row: str, depth: int = 0) -> str:
        if depth > _DEEPEST:
            raise LookupError(f"the SQL statement {filling.within!r} contains itself: a fragment refers to itself")

        def fill(found: re.Match[str]) -> str:
            hole, argument = found[1], row if found[2] == "row" else found[2] or ""
            if hole in ("row", "parameter"):
                return row
            if (literal := filling.values.get(hole)) is not None:
                return literal
            declared = filling.declared.get(hole)
            if declared is None and (name := self._known.get(hole)) is not None:
                return name
            part = self._statements.get(hole if declared is None else declared)
            if part is not None:
                examples: Mapping[str, str] = part.examples if filling.examples else {}
                inner = replace(filling, declared={**examples, **_declared(part, ()), **filling.declared})
                return self._filled(part.text, inner, argument, depth + 1)
            if declared is None and filling.strict:
                raise LookupError(
                    f"the SQL statement {filling.within!r} asks for {{{hole}}}: no fragment and no value has that name"
                )
            return found[0] if declared is None else declared

        return _HOLE.sub(fill, sql)


@dataclass(frozen=True, slots=True)
class _Filling:
    """What fills the holes of a statement: texts that a caller gave, else what its file declares."""

    values: Mapping[str, str]
    declared: dict[str, str]
    within: str = ""
    strict: bool = True
    """Whether a hole that nothing fills is an error."""
    examples: bool = False
    """Whether examples fill what a caller would fill."""


def _declared(statement: NamedStatement, variants: tuple[str, ...]) -> dict[str, str]:
    """Hole → name of a fragment, or text."""
    for variant in variants:
        if variant not in statement.variants:
            known = ", ".join(statement.variants) or "none"
            raise LookupError(f"the SQL statement {statement.name!r} has no variant {variant!r}: it has {known}")
    declared = {hole: "" for variant in statement.variants.values() for hole in variant}
    declared |= statement.values
    for variant in variants:
        declared |= statement.variants[variant]
    return declared
