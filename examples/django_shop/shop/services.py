"""Placing an order: the order and its event are committed together, or neither of them is."""

from django.db import transaction

from pillarbox import Event
from pillarbox.integrations.django import record

from .models import Order


@transaction.atomic
def place_order(customer: str, total: int) -> Order:
    """Save an order and record its event."""
    order = Order.objects.create(customer=customer, total=total)
    record(
        Event(
            "order.placed",
            {"order": order.pk, "total": total},
            aggregate_type="order",
            aggregate_id=str(order.pk),
            key=customer,
        )
    )
    return order
