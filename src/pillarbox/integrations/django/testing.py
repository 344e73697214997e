"""A relay for tests over what a TransactionTestCase has committed, and an empty outbox before each of them."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, aclosing

from django.db import connections, transaction

from pillarbox.core.errors import ConfigurationError
from pillarbox.integrations.django.configuration import database, load_settings, table_settings
from pillarbox.integrations.django.relay import manage_connections
from pillarbox.ops.settings import Settings
from pillarbox.ops.wiring import make_relay, open_store, open_transports
from pillarbox.statements import Names, StatementSet, load_statements
from pillarbox.transports.handlers import Handlers

_CLEARED = ("message", "history", "dead_letter", "attempt", "request", "audit", "ledger", "inbox", "inbox_statistics")


def run_relay(using: str | None = None) -> int:
    """Send the committed events of a database as the relay does, until nothing can be sent now.

    Returns how many events are still pending: in backoff, blocked or delayed. For tests that commit, as those of
    TransactionTestCase do. Raises ConfigurationError within a transaction, and for a SQLite database in memory.
    """
    alias = using or database()
    if alias in connections and connections[alias].in_atomic_block:
        raise ConfigurationError(
            f"a transaction is open on the database {alias!r}, and a relay sees committed events only: use "
            "TransactionTestCase instead of TestCase, in pytest-django `@pytest.mark.django_db(transaction=True)`, and "
            "call run_relay outside `transaction.atomic()`"
        )
    settings = load_settings(alias)
    # All of them: an open connection would keep the runner from dropping the test database.
    manage_connections(settings, release=connections.close_all)
    return asyncio.run(_run_until_empty(settings))


def clear_outbox(using: str | None = None) -> None:
    """Delete every event, dead letter and inbox record of a database. TransactionTestCase does not delete them."""
    alias = using or database()
    connection, tables = connections[alias], table_settings(alias).store.tables
    quote = connection.ops.quote_name
    schema = f"{quote(tables.schema)}." if connection.vendor == "postgresql" else ""
    statements = StatementSet(Names(), load_statements("pillarbox.integrations.django", "testing"))
    with transaction.atomic(using=alias), connection.cursor() as cursor:
        for table in _CLEARED:
            cursor.execute(statements.get("clear", table=f"{schema}{quote(f'{tables.prefix}{table}')}"))


async def _run_until_empty(settings: Settings) -> int:
    async with AsyncExitStack() as opened:
        store = await opened.enter_async_context(aclosing(open_store(settings.store, ledger=settings.store.ledger)))
        transports = open_transports(settings)
        for transport in transports.values():
            # Handlers belong to the application and serve the next test, too; once closed they would be of no use.
            if not isinstance(transport, Handlers):
                opened.push_async_callback(transport.aclose)
        return await make_relay(settings, store=store, transports=transports).run_until_empty()
