"""Names of tables: validated once, quoted always, so that a prefix or a schema can never smuggle SQL in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2b

from pillarbox.core.errors import ConfigurationError

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
LONGEST_IDENTIFIER = 63
# The longest thing derived from a prefix: a day of history and its index.
LONGEST_SUFFIX = len("history_20261231_event_id_idx")

_TABLES = (
    "message",
    "history",
    "dead",
    "lane",
    "relay",
    "destination",
    "attempt",
    "stat",
    "request",
    "audit",
    "schema",
    "event",
)
_BESIDE = ("inbox_receipt", "inbox_tally", "processed_event")
_PLACEHOLDER = re.compile(r"\{([a-z_0-9]+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Where the tables live: a prefix and, on PostgreSQL, a schema.

    Raises ConfigurationError for anything that is not a plain identifier or grows beyond 63 bytes.
    """

    prefix: str = "outbox_"
    schema: str | None = None

    def __post_init__(self) -> None:
        _check("prefix", self.prefix, LONGEST_IDENTIFIER - LONGEST_SUFFIX)
        if self.schema is not None:
            _check("schema", self.schema, LONGEST_IDENTIFIER)

    @property
    def stem(self) -> str:
        """What stands before the names that are not the outbox's own, such as `inbox_receipt`."""
        return self.prefix.removesuffix("outbox_")

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
        }

    @property
    def channel(self) -> str:
        """The doorbell's channel: one per outbox of a database, and so also the outbox's name for its locks."""
        own = f"{self.prefix}doorbell"
        if self.schema is None:
            return own
        if len(full := f"{self.schema}.{own}") <= LONGEST_IDENTIFIER:
            return full
        return f"{blake2b(self.schema.encode(), digest_size=8).hexdigest()}.{own}"

    def qualified(self, name: str) -> str:
        """`name` quoted, and qualified with the schema where there is one."""
        return f'"{self.schema}"."{name}"' if self.schema else f'"{name}"'

    def render(self, sql: str, **extra: str) -> str:
        """`sql` with `{message}` and its like replaced by quoted names; unknown braces stay as they are."""
        known = {table: self.qualified(self.prefix + table) for table in _TABLES}
        known |= {table: self.qualified(self.stem + table) for table in _BESIDE}
        known["schema_name"] = f'"{self.schema}"' if self.schema else ""
        known["prefix"] = self.prefix
        known["stem"] = self.stem
        known["channel"] = self.channel
        known |= extra
        return _PLACEHOLDER.sub(lambda found: known.get(found[1], found[0]), sql)


def _check(field: str, value: str, longest: int) -> None:
    if not IDENTIFIER.fullmatch(value):
        raise ConfigurationError(
            f"{field} {value!r} is not a plain identifier: use letters, digits and underscores, "
            "and do not begin with a digit"
        )
    if len(value) > longest:
        raise ConfigurationError(f"{field} {value!r} is too long: at most {longest} characters")
