"""Version 1 of the tables, and the models that hold the permissions of the admin."""

from typing import ClassVar

from django.db import migrations, models

from pillarbox.integrations.django.schema import UpgradeTables


class Migration(migrations.Migration):
    initial = True
    dependencies: ClassVar = []
    operations: ClassVar = [
        migrations.CreateModel(
            name="Event",
            fields=[("event_id", models.TextField(primary_key=True, serialize=False, verbose_name="event id"))],
            options={
                "verbose_name": "event",
                "managed": False,
                "default_permissions": ("view",),
                "permissions": (
                    ("retry_event", "Can retry event"),
                    ("discard_event", "Can discard event"),
                    ("view_payload", "Can view payloads"),
                ),
            },
        ),
        migrations.CreateModel(
            name="DeadLetter",
            fields=[("number", models.BigIntegerField(primary_key=True, serialize=False))],
            options={
                "verbose_name": "dead letter",
                "managed": False,
                "default_permissions": ("view",),
                "permissions": (
                    ("retry_deadletter", "Can retry dead letter"),
                    ("discard_deadletter", "Can discard dead letter"),
                ),
            },
        ),
        UpgradeTables(1),
    ]
