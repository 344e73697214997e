"""System checks: invalid settings, an unsupported database, a missing driver, handlers that cannot be imported, missing
tables."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import DatabaseError, connections

from pillarbox.core.errors import ConfigurationError, SettingsError
from pillarbox.integrations.django.configuration import database, table_settings
from pillarbox.integrations.django.relay import handlers_of
from pillarbox.integrations.django.schema import installed_version, required_version
from pillarbox.ops.settings import Settings
from pillarbox.ops.wiring import open_store

INVALID_SETTING = "pillarbox.E001"
NO_HANDLERS = "pillarbox.E002"
NO_DRIVER = "pillarbox.E003"
MISSING_TABLES = "pillarbox.W001"
NO_AUTOCOMMIT = "pillarbox.W002"


def register_all() -> None:
    """Register the checks."""
    register(check_settings, Tags.compatibility)
    register(check_tables, Tags.database)


def check_settings(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """PILLARBOX, the database that it names, our driver for it, and the handlers that it imports."""
    try:
        alias = database()
        settings = table_settings(alias)
    except SettingsError as error:
        return [Error(problem, id=INVALID_SETTING) for problem in error.problems]
    except ConfigurationError as error:
        return [Error(str(error), id=INVALID_SETTING)]
    return [*_driver(alias, settings), *_handlers(settings), *_transactions(alias)]


def check_tables(app_configs: Any = None, databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """The tables. `migrate` runs this check before it creates them, and is not warned."""
    if sys.argv[1:2] == ["migrate"]:
        return []
    try:
        alias = database()
        if alias not in (databases or ()):
            return []
        connection = connections[alias]
        found, needed = installed_version(connection), required_version(connection)
    except (ConfigurationError, DatabaseError):
        return []  # `check_settings` and Django itself report these
    if found >= needed:
        return []
    what = f"has the tables of Pillarbox at version {found}" if found else "has no tables of Pillarbox"
    hint = (
        f"Run `manage.py migrate pillarbox --database {alias}`. If that has been done, prefix or schema were changed "
        "since: change them back, or create other tables with `manage.py pillarbox schema apply`."
    )
    return [Warning(f"DATABASES[{alias!r}] {what}; this release needs {needed}.", hint=hint, id=MISSING_TABLES)]


def _driver(alias: str, settings: Settings) -> Iterator[CheckMessage]:
    try:
        open_store(settings.store)
    except ConfigurationError as error:
        yield Error(
            f"DATABASES[{alias!r}]: {error}",
            hint="Migrations, relay, admin and commands have a driver of their own, beside the one that Django uses.",
            id=NO_DRIVER,
        )


def _handlers(settings: Settings) -> Iterator[CheckMessage]:
    try:
        handlers_of(settings)
    except ConfigurationError as error:
        yield Error(f"{settings.called('transports')}: {error}", id=NO_HANDLERS)
    except Exception as error:  # whatever the module of the application raises
        yield Error(
            f"{settings.called('transports')}: the handlers cannot be imported: {type(error).__name__}: {error}",
            id=NO_HANDLERS,
        )


def _transactions(alias: str) -> Iterator[CheckMessage]:
    if not connections[alias].settings_dict["AUTOCOMMIT"]:
        yield Warning(
            f"DATABASES[{alias!r}] has AUTOCOMMIT = False, so record() cannot tell whether your code ever commits: "
            "an event is lost with a transaction that is not committed.",
            hint="Remove AUTOCOMMIT, and open transactions with `transaction.atomic()`.",
            id=NO_AUTOCOMMIT,
        )
