"""Orders, and what handlers have written."""

from django.db import models


class Order(models.Model):
    """A row of the service itself."""

    total = models.IntegerField()

    def __str__(self) -> str:
        return f"order {self.pk}"


class Note(models.Model):
    """What a handler wrote."""

    text = models.TextField()

    def __str__(self) -> str:
        return f"note {self.text}"
