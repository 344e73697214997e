"""The operators' half of a store.

    events         list · show                                    pending, delivered and dead-lettered events
    dead_letters   list · details · retry · edit · discard
    requests       add · drain · override                         what operators ask relays for
    audit          add · list                                     who did what
    replays        count · chosen · begin · find · copy           delivered events are sent again
    archive        count_expired · count_expired_inbox · read · drop · erase   old rows are exported, then deleted
    keys           blocked · busiest · queue                      what holds ordering keys back
    inspection     overview · states · destinations · relays · consumers   the state of outbox and inbox
    samples        since                                          statistics over time

A relay needs none of this. `store.admin` is the one way to reach it, and it shares the connections of its store. Every
method raises StoreUnavailableError when the database cannot be reached, and SchemaError when the tables are missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn, Protocol

from pillarbox.admin.archive import Archive
from pillarbox.admin.audit import Audit
from pillarbox.admin.dead_letters import DeadLetters
from pillarbox.admin.diagnosis import Diagnosis
from pillarbox.admin.keys import Keys
from pillarbox.admin.listing import Events
from pillarbox.admin.overview import Inspection
from pillarbox.admin.replay import Replays
from pillarbox.admin.requests import Requests
from pillarbox.core.errors import ConfigurationError
from pillarbox.core.statistics import Sample
from pillarbox.core.store import LedgerKind, Schema, Store
from pillarbox.statements import StatementSet


class Samples(Protocol):
    """Statistics over time, as relays wrote them."""

    async def since(self, seconds: float) -> Sequence[Sample]:
        """Return the samples of the last `seconds`, the oldest first, and at most the newest `MAX_SAMPLES`."""
        ...


class Admin(Protocol):
    """What operators need of a store."""

    @property
    def events(self) -> Events: ...
    @property
    def dead_letters(self) -> DeadLetters: ...
    @property
    def requests(self) -> Requests: ...
    @property
    def audit(self) -> Audit: ...
    @property
    def replays(self) -> Replays: ...
    @property
    def archive(self) -> Archive: ...
    @property
    def keys(self) -> Keys: ...
    @property
    def inspection(self) -> Inspection: ...
    @property
    def samples(self) -> Samples: ...


class AdminSchema(Schema, Protocol):
    """The tables, and the statements that a store sends."""

    def statements(self) -> StatementSet | None:
        """The SQL statements that the store sends, by name; None if it sends no SQL."""
        ...


class AdminStore(Store, Protocol):
    """A store with both halves: the relay's, and the operators'."""

    @property
    def schema(self) -> AdminSchema: ...
    @property
    def admin(self) -> Admin: ...
    @property
    def diagnosis(self) -> Diagnosis: ...
    def clone(self, *, history: bool | None = None, ledger: LedgerKind | None = None) -> AdminStore: ...


class NoAdmin:
    """The operator interface of a store that has none. A store that supports a part of it inherits this."""

    def __init__(self, store: str) -> None:
        """store: the store's URL or scheme, for errors."""
        self._store = store

    @property
    def events(self) -> Events:
        self.refuse("events")

    @property
    def dead_letters(self) -> DeadLetters:
        self.refuse("dead letters")

    @property
    def requests(self) -> Requests:
        self.refuse("operator requests")

    @property
    def audit(self) -> Audit:
        self.refuse("the audit")

    @property
    def replays(self) -> Replays:
        self.refuse("replays")

    @property
    def archive(self) -> Archive:
        self.refuse("archiving")

    @property
    def keys(self) -> Keys:
        self.refuse("ordering keys")

    @property
    def inspection(self) -> Inspection:
        self.refuse("the overview")

    @property
    def samples(self) -> Samples:
        self.refuse("statistics over time")

    def refuse(self, what: str) -> NoReturn:
        """Raise ConfigurationError for a part of the operator interface that the store does not support."""
        raise ConfigurationError(
            f"{self._store} does not support {what}: it does not implement the operator interface; "
            "use postgresql://…, mariadb://… or sqlite:///file.db"
        )
