"""What Django's admin and permissions refer to. No model has a table: events are read through `store.admin`."""

from __future__ import annotations

from typing import ClassVar

from django.db import models


class Event(models.Model):
    """A pending, delivered or dead-lettered event, by its id."""

    event_id: models.TextField[str, str] = models.TextField("event id", primary_key=True)

    objects: ClassVar[models.Manager[Event]]

    class Meta:
        managed = False
        default_permissions = ("view",)
        permissions = (
            ("retry_event", "Can retry event"),
            ("discard_event", "Can discard event"),
            ("view_payload", "Can view payloads"),
        )
        verbose_name = "event"

    def __str__(self) -> str:
        return self.event_id


class DeadLetter(models.Model):
    """A dead letter, by its number."""

    number: models.BigIntegerField[int, int] = models.BigIntegerField(primary_key=True)

    objects: ClassVar[models.Manager[DeadLetter]]

    class Meta:
        managed = False
        default_permissions = ("view",)
        permissions = (
            ("retry_deadletter", "Can retry dead letter"),
            ("discard_deadletter", "Can discard dead letter"),
        )
        verbose_name = "dead letter"

    def __str__(self) -> str:
        return str(self.number)
