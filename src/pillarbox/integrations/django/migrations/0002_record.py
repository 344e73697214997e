"""Version 2 of the tables: a function that records events in SQL."""

from typing import ClassVar

from django.db import migrations

from pillarbox.integrations.django.schema import UpgradeTables


class Migration(migrations.Migration):
    dependencies: ClassVar = [("pillarbox", "0001_initial")]
    operations: ClassVar = [UpgradeTables(2)]
