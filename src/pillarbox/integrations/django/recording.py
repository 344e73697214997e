"""Record events in the transaction of Django's connection."""

from __future__ import annotations

from functools import cache

from django.core.signals import setting_changed
from django.db import connections

from pillarbox.core.event import Event
from pillarbox.integrations.django.configuration import database, table_settings
from pillarbox.ops.wiring import make_outbox
from pillarbox.record.outbox import Outbox


def record(*events: Event, using: str | None = None) -> list[str]:
    """Record events in the open transaction of a database of DATABASES; returns their ids, in order.

    using: the alias of the database; None: `PILLARBOX["database"]`, which is "default" unless it is set.
    A rollback, also to a savepoint, takes the events with it. In an async view call a function that opens the
    transaction, writes and records, through `sync_to_async`.

    Raises NotInTransactionError outside `transaction.atomic()`, and in a TestCase whose own transaction is the only
    one; RecordError for an invalid event; DuplicateEventError for an id that is pending already; SchemaError before
    `migrate`; ConfigurationError for invalid settings. Other database errors are Django's.
    """
    alias = using or database()
    return _outbox(alias).record(connections[alias], *events)


@cache
def _outbox(using: str) -> Outbox:
    return make_outbox(table_settings(using))


def _forget(*, setting: str, **_: object) -> None:
    if setting in ("PILLARBOX", "DATABASES"):
        _outbox.cache_clear()


setting_changed.connect(_forget, dispatch_uid="pillarbox.recording")
