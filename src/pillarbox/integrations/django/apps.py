"""The application in INSTALLED_APPS."""

from __future__ import annotations

from django.apps import AppConfig


class PillarboxConfig(AppConfig):
    """`pillarbox.integrations.django`, with the label `pillarbox`."""

    name = "pillarbox.integrations.django"
    label = "pillarbox"
    verbose_name = "Pillarbox"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from pillarbox.core.errors import SchemaError
        from pillarbox.integrations.django import checks

        SchemaError.command = "manage.py migrate"
        checks.register_all()
