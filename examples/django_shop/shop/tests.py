"""Tests of the shop: what is recorded, and what the handlers make of it."""

from django.db import connection, transaction
from django.test import TestCase, TransactionTestCase

from pillarbox import Event, NotInTransactionError
from pillarbox.integrations.django import record
from pillarbox.integrations.django.testing import clear_outbox, run_relay

from .models import Order
from .services import place_order


def pending() -> int:
    """The number of pending events that this test sees."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM outbox_message")
        return int(cursor.fetchall()[0][0])


class PlaceOrder(TestCase):
    def test_an_order_is_saved_with_its_event(self) -> None:
        response = self.client.post("/orders/", {"customer": "ada", "total": 42}, content_type="application/json")
        self.assertEqual(response.status_code, 201)
        self.assertEqual((Order.objects.count(), pending()), (1, 1))

    def test_a_rollback_takes_the_event_with_it(self) -> None:
        with self.assertRaises(ZeroDivisionError), transaction.atomic():
            place_order("ada", 42)
            raise ZeroDivisionError
        self.assertEqual((Order.objects.count(), pending()), (0, 0))

    def test_an_event_outside_a_transaction_is_refused(self) -> None:
        with self.assertRaises(NotInTransactionError):
            record(Event("order.placed", {"order": 1}))


class ConfirmOrder(TransactionTestCase):
    def setUp(self) -> None:
        clear_outbox()

    def test_the_relay_confirms_an_order(self) -> None:
        order = place_order("ada", 42)
        self.assertEqual(run_relay(), 0)
        order.refresh_from_db()
        self.assertTrue(order.confirmed)

    async def test_an_async_view_places_an_order(self) -> None:
        asked = {"customer": "ada", "total": 42}
        response = await self.async_client.post("/orders/async/", asked, content_type="application/json")
        self.assertEqual(response.status_code, 201)
