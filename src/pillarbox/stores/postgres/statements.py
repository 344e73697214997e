"""Every statement sent to PostgreSQL, by the name of its file, with names and shared fragments filled in."""

from __future__ import annotations

from importlib.resources import files

from pillarbox.core import sqlfiles
from pillarbox.core.names import Names

PACKAGE = "pillarbox.stores.postgres"

# Word for word the predicates of the partial indexes: the planner proves their use by comparing these.
IS_HEAD = (
    "h.held IN ('aside', 'blocked') OR (h.held IS NULL AND h.available_at IS NOT NULL AND h.attempts + h.tries > 0)"
)
IS_DELAYED = "h.held IS NULL AND h.available_at IS NOT NULL AND h.attempts + h.tries = 0"
# A subselect and not an array: it is hashed whatever the plan; an array is hashed only by a plan made for its value.
NOT_IN_HAND = (
    "(y.id, y.destination) NOT IN (SELECT i.id, d.destination"
    " FROM unnest($6::text::text[], $7::text::text[]) AS d(ids, destination)"
    " CROSS JOIN LATERAL unnest(d.ids::bigint[]) AS i(id))"
)
# In the order of the lanes as they are given: no sort, and what the limit cuts off is the end of a lane or whole lanes.
_SIZE = (
    "octet_length(x.payload) + octet_length(x.headers) + coalesce(octet_length(x.correlation_id), 0)"
    " + coalesce(octet_length(x.causation_id), 0) + coalesce(octet_length(x.trace_id), 0)"
)
BYTES_SO_FAR = (
    f"{_SIZE} AS size, sum({_SIZE}) OVER (ROWS UNBOUNDED PRECEDING) AS bytes,"
    " row_number() OVER (ROWS UNBOUNDED PRECEDING) AS number"
)
# $4 is the bound on all, $5 the bound on the first.
WITHIN_BYTES = "m.bytes <= $4::bigint OR (m.bytes = m.size AND m.size <= $5::bigint)"
# What fits, and the first that does not: whoever reads must know that there is more.
TOLD_OF = "m.bytes - m.size <= $4::bigint OR m.number = 2"
SESSION_ID = "a.pid || ':' || extract(epoch FROM a.backend_start)"
# Who may not see when another role's session began takes it for the same one: then the lease decides. After a restart
# of the server every relay needs a moment to reconnect.
SESSION_ENDED = f"""r.session IS NOT NULL AND pg_postmaster_start_time() < now() - interval '5 seconds'
  AND NOT EXISTS (SELECT FROM pg_stat_get_activity(split_part(r.session, ':', 1)::integer) a
                  WHERE a.backend_start IS NULL OR {SESSION_ID} = r.session)"""

_OWN_NAMES = (
    "uuid7",
    "json",
    "retry",
    "history_make",
    "history_drop",
    "history_default",
    "dead_type_idx",
    "dead_key_idx",
    "dead_recorded_idx",
    "message_recorded_idx",
    "message_blocked_idx",
    "message_id_seq",
    "alias_new",
    "alias_update",
    "alias_delete",
    "events_insert",
    "outbox_insert",
    "integration_insert",
    "dlq_insert",
    "dlq_delete",
    "payload_limit",
    "readable",
)
_FRAGMENTS = ("columns", "fetched", "same_row", "behind", "blocker", "fence", "grows", "outage")


class Statements:
    """The statements of one outbox."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self._extra = {name: names.qualified(names.prefix + name) for name in _OWN_NAMES}
        self._extra |= {placeholder: names.qualified(name) for placeholder, name in names.aliases.items()}
        self._fragments = {
            "is_head": IS_HEAD,
            "is_delayed": IS_DELAYED,
            "not_in_hand": NOT_IN_HAND,
            "bytes_so_far": BYTES_SO_FAR,
            "told_of": TOLD_OF,
            "within_bytes": WITHIN_BYTES,
            "session_id": SESSION_ID,
            "session_ended": SESSION_ENDED,
            "progress": "true",
            "outside": "",
            "ledger": "",
            "in_range": "",
        }
        for fragment in _FRAGMENTS:
            self._fragments[fragment] = self._render(fragment)

    def _render(self, name: str, **more: str) -> str:
        return sqlfiles.statement(PACKAGE, name, self.names, **(self._extra | self._fragments | more))

    def get(self, name: str, **more: str) -> str:
        """The statement of `sql/<name>.sql`."""
        return self._render(name, **more)

    def fenced(self, name: str, *, progress: bool, ledger: str | None = None) -> str:
        """A fenced write; `progress` says whether it clears the crashes of its lanes, `ledger` which fragment keeps
        that."""
        fence = self._render("fence", progress=str(progress).lower())
        return self._render(name, fence=fence, ledger="" if ledger is None else self._render(ledger))

    def narrowed(self, name: str, **fragments: str | None) -> str:
        """A statement with other files put into its places; None leaves a place empty."""
        filled = {place: "" if file is None else self._render(file) for place, file in fragments.items()}
        return self._render(name, **filled)

    def ranged(self, name: str, *, taken: int) -> str:
        """A read that takes a range of times as well, after the `taken` parameters it has anyway."""
        times = {"after": f"${taken + 1}::timestamptz", "before": f"${taken + 2}::timestamptz"}
        fragments = {fragment: self._render(fragment, **times) for fragment in ("outside", "in_range")}
        return self._render(name, **fragments)

    def migrations(self) -> dict[int, tuple[str, str]]:
        """Version → (name, SQL), in order."""
        folder = files(PACKAGE) / "sql" / "migrations"
        found = sorted(entry.name.removesuffix(".sql") for entry in folder.iterdir() if entry.name.endswith(".sql"))
        return {int(name[:4]): (name, self._whole(f"migrations/{name}")) for name in found}

    def script(self, name: str, **more: str) -> str:
        """A script of several statements, with its comments."""
        return self._whole(name, **more)

    def _whole(self, name: str, **more: str) -> str:
        return self.names.render(sqlfiles.text(PACKAGE, name), **(self._extra | more))
