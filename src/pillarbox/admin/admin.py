"""The operators' half of a store.

    events         list · show                                    pending, delivered and dead-lettered events
    dead_letters   list · details · retry · edit · discard
    requests       add · drain · override                         what operators ask relays for
    audit          add · list                                     who did what
    replays        count · chosen · begin · find · copy           delivered events go out once more
    archive        stale · read · drop                            old rows leave by way of a file
    keys           blocked · hot · line                           what holds ordering keys back
    inspection     overview · relays · consumers                  how outbox and inbox are doing
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
from pillarbox.core.store import LedgerKind, Store


class Samples(Protocol):
    """Statistics over time, as relays wrote them."""

    async def since(self, seconds: float) -> Sequence[Sample]:
        """Return the samples of the last so many seconds, the oldest first, and at most the newest `MOST`."""
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


class AdminStore(Store, Protocol):
    """A store with both halves: the relay's, and the operators'."""

    @property
    def admin(self) -> Admin: ...
    @property
    def diagnosis(self) -> Diagnosis: ...
    def beside(self, *, history: bool | None = None, ledger: LedgerKind | None = None) -> AdminStore: ...


class NoAdmin:
    """The operators' half of a store that has none. A store that supports some of it inherits this."""

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
        """Raise ConfigurationError for a part of the operators' half that the store does not support."""
        raise ConfigurationError(
            f"{self._store} does not support {what}: it has not the whole operators' half of a store; "
            "use sqlite:///file.db or postgresql://…"
        )
