"""Events and dead letters in Django's admin: lists with filters and search, details, retry and discard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.http import Http404, HttpRequest

from pillarbox.admin.dead_letters import ListedDeadLetter
from pillarbox.admin.listing import EventDetail, ListedEvent
from pillarbox.admin.states import EventState
from pillarbox.integrations.django.admin_pages import OutboxAdmin, may
from pillarbox.integrations.django.admin_store import DeadLetterRows, EventRows, masks
from pillarbox.integrations.django.models import DeadLetter, Event
from pillarbox.ops.console import payloads

_SINCE = (
    ("", "Any time"),
    ("1h", "Past hour"),
    ("24h", "Past 24 hours"),
    ("7d", "Past 7 days"),
    ("30d", "Past 30 days"),
)
_STATES = (("", "All"), *((state.value, state.label.capitalize()) for state in EventState))


@admin.register(Event)
class EventAdmin(OutboxAdmin):
    """Events: pending, delivered and dead-lettered."""

    rows = EventRows
    search = (
        ("id", "Event id"),
        ("type", "Type"),
        ("key", "Key"),
        ("destination", "Destination"),
        ("aggregate", "Aggregate"),
        ("error", "Error"),
    )
    sidebar = (("By state", "state", _STATES), ("By time of recording", "since", _SINCE))
    columns = ("Event id", "Type", "Key", "Destination", "State", "Recorded", "Last error")

    def _row(self, row: ListedEvent) -> dict[str, Any]:
        cells = (row.event_type, row.key, row.destination, row.state.label, row.recorded_at, row.last_error)
        return {
            "key": EventRows.key(row),
            "url": self._url("change", quote(row.event_id)),
            "name": row.event_id,
            "cells": cells,
        }

    def _found(self, asked: Mapping[str, str]) -> str | None:
        if "id" not in asked:
            return None
        return self._url("change", quote(asked["id"]))

    def _detail(self, request: HttpRequest, name: str) -> dict[str, Any]:
        report = EventRows.report(name)
        if not report.events:
            raise Http404(f"There is no event {name!r}.")
        return {
            "deliveries": [(EventRows.key(one), one) for one in report.events],
            "failures": report.failures,
            "requests": report.requests,
            **content(request, report.events[0]),
        }


@admin.register(DeadLetter)
class DeadLetterAdmin(OutboxAdmin):
    """Dead letters: messages whose delivery ended without success."""

    rows = DeadLetterRows
    search = (("id", "Event id"), ("type", "Type"), ("key", "Key"), ("destination", "Destination"), ("error", "Error"))
    sidebar = (("By time of dead-lettering", "since", _SINCE),)
    columns = ("Event id", "Type", "Key", "Destination", "Dead-lettered", "Error")

    def _row(self, row: ListedDeadLetter) -> dict[str, Any]:
        cells = (row.event_type, row.key, row.destination, row.dead_lettered_at, row.error)
        return {"key": str(row.id), "url": self._url("change", str(row.id)), "name": row.event_id, "cells": cells}

    def _detail(self, request: HttpRequest, name: str) -> dict[str, Any]:
        detail = DeadLetterRows.detail(int(name)) if name.isdecimal() and len(name) < 19 else None
        if detail is None:
            raise Http404(f"There is no dead letter {name}.")
        return {"deliveries": [(name, detail)], **content(request, detail)}


def content(request: HttpRequest, detail: EventDetail) -> dict[str, Any]:
    """Payload and headers, masked, for users with the permission to view them."""
    if not may(request, "view_payload"):
        return {"event": detail}
    rules = masks()
    shown = payloads.show(detail, None, rules)
    text = "".join(piece.text for piece in shown.pieces)
    return {"event": detail, "payload": shown, "payload_text": text, "headers": rules.headers(detail.headers)}
