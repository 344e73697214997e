"""Consume events in transactions of Django's connection: the inbox and your models commit together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import DEFAULT_DB_ALIAS, close_old_connections, connections, transaction

from pillarbox.inbox.inbox import Inbox
from pillarbox.integrations.django.configuration import table_settings


@contextmanager
def inbox_transaction(using: str = DEFAULT_DB_ALIAS) -> Iterator[Any]:
    """The transaction of one consumed event: `Consumer(…, transaction=inbox_transaction, inbox=inbox())`.

    Handlers are plain functions: Django's ORM is not for the event loop.
    """
    close_old_connections()
    try:
        with transaction.atomic(using=using, durable=True):
            yield connections[using]
    finally:
        close_old_connections()


def inbox(using: str = DEFAULT_DB_ALIAS) -> Inbox:
    """The inbox with prefix and schema of PILLARBOX. Raises ConfigurationError."""
    return Inbox(tables=table_settings(using).store.tables)
