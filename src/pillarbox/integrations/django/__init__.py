"""Pillarbox as a Django application: add "pillarbox.integrations.django" to INSTALLED_APPS.

    configuration        PILLARBOX of settings.py and DATABASES become `Settings`
    recording            record: in the transaction of Django's connection
    consuming            a consumer's transaction on Django's connection
    migrations schema    one migration of Django per version of the tables
    checks               system checks
    models admin …       pages of events and dead letters in Django's admin
    command management   the commands of `pillarbox` with these settings
    relay testing        handlers with Django's connections; a relay for tests

This module imports no model, so that models may import it.
"""

from __future__ import annotations

try:
    from pillarbox.integrations.django.consuming import inbox, inbox_transaction
    from pillarbox.integrations.django.recording import record
except ModuleNotFoundError as missing:
    if missing.name != "django":
        raise
    raise ImportError('pillarbox.integrations.django needs Django: pip install "pillarbox[django]"') from missing

__all__ = ["inbox", "inbox_transaction", "record"]
