"""record(): in Django's transactions, on every driver."""

import json
from typing import Any

from asgiref.sync import sync_to_async
from django.core.exceptions import SynchronousOnlyOperation
from django.db import IntegrityError, connection, transaction
from django.test import TestCase, TransactionTestCase
from django.test.utils import CaptureQueriesContext

from pillarbox import DuplicateEventError, Event, InvalidConnectionError, NotInTransactionError, Outbox, RecordError
from pillarbox.integrations.django import record
from pillarbox.integrations.django.configuration import table_settings
from pillarbox.integrations.django.testing import clear_outbox

from .models import Order
from .outbox import recorded, rows


def placed(**payload: Any) -> Event:
    return Event("order.placed", payload)


class Transactions(TransactionTestCase):
    databases = {"default", "second"}

    def setUp(self) -> None:
        clear_outbox()
        clear_outbox("second")

    def test_events_commit_with_the_rows_of_the_service(self) -> None:
        with transaction.atomic():
            Order.objects.create(total=3)
            ids = record(placed(total=3), placed(total=4))
        self.assertEqual((recorded(), Order.objects.count()), (ids, 1))

    def test_a_rollback_takes_the_events_with_it(self) -> None:
        with self.assertRaises(ZeroDivisionError), transaction.atomic():
            record(placed(total=3))
            raise ZeroDivisionError
        self.assertEqual(recorded(), [])

    def test_a_rollback_to_a_savepoint_takes_only_the_inner_events_with_it(self) -> None:
        with transaction.atomic():
            before = record(placed(at="before"))
            with self.assertRaises(ZeroDivisionError), transaction.atomic():
                record(placed(at="inner"))
                raise ZeroDivisionError
            sid = transaction.savepoint()
            record(placed(at="savepoint"))
            transaction.savepoint_rollback(sid)
            after = record(placed(at="after"))
        self.assertEqual(recorded(), before + after)

    def test_durable_blocks_accept_events(self) -> None:
        with transaction.atomic(durable=True):
            ids = record(placed(total=3))
        self.assertEqual(recorded(), ids)

    def test_an_event_outside_atomic_is_refused_with_the_remedy(self) -> None:
        with self.assertRaisesRegex(NotInTransactionError, r"transaction\.atomic\(\)"):
            record(placed(total=3))
        with self.assertRaisesRegex(NotInTransactionError, r"transaction\.atomic\(using='second'\)"):
            record(placed(total=3), using="second")
        self.assertEqual(recorded(), [])

    def test_a_transaction_of_another_database_does_not_count(self) -> None:
        with transaction.atomic(using="second"), self.assertRaises(NotInTransactionError):
            record(placed(total=3))

    def test_each_database_has_its_own_events(self) -> None:
        with transaction.atomic(using="second"):
            ids = record(placed(total=3), using="second")
        self.assertEqual((recorded("second"), recorded()), (ids, []))

    def test_transactions_that_the_application_manages_itself_are_accepted(self) -> None:
        transaction.set_autocommit(False)
        try:
            record(placed(total=3))
            transaction.rollback()
            ids = record(placed(total=4))
            transaction.commit()
        finally:
            transaction.set_autocommit(True)
        self.assertEqual(recorded(), ids)

    def test_a_duplicate_is_refused_and_the_transaction_goes_on_after_its_savepoint(self) -> None:
        event = placed(total=3)
        with transaction.atomic():
            record(event)
            with self.assertRaises(DuplicateEventError), transaction.atomic():
                record(event)
            [other] = record(placed(total=4))
        self.assertEqual(recorded(), [event.event_id, other])

    def test_a_broken_transaction_is_refused_like_any_query_of_django(self) -> None:
        with transaction.atomic():
            transaction.set_rollback(True)
            with self.assertRaises(transaction.TransactionManagementError):
                record(placed(total=3))
        self.assertEqual(recorded(), [])

    def test_an_invalid_event_leaves_the_transaction_usable(self) -> None:
        with transaction.atomic():
            with self.assertRaises(RecordError):
                record(Event("order.placed", {"of": object()}))
            ids = record(placed(total=3))
        self.assertEqual(recorded(), ids)

    def test_percent_signs_quotes_and_every_language_arrive_unchanged(self) -> None:
        payload = {"text": "100 % of %s and %(x)s, 'single' \"double\" \\ Zürich 東京 🚀"}
        with transaction.atomic():
            record(Event("order.placed", payload, key="50%", headers={"who": "Ada's"}))
        [(stored, key)] = rows("payload, ordering_key")
        self.assertEqual((json.loads(bytes(stored)), key), (payload, "50%"))

    def test_bytes_arrive_unchanged(self) -> None:
        raw = bytes(range(256))
        with transaction.atomic():
            record(Event("scan.taken", raw, content_type="application/octet-stream"))
        [(stored,)] = rows("payload")
        self.assertEqual(bytes(stored), raw)

    def test_djangos_own_errors_stay_djangos(self) -> None:
        with self.assertRaises(IntegrityError), transaction.atomic():
            record(placed(total=3))
            Order.objects.create(total=None)
        self.assertEqual(recorded(), [])

    def test_an_outbox_of_your_own_accepts_the_connection(self) -> None:
        outbox = Outbox(tables=table_settings("default").store.tables)
        with transaction.atomic():
            ids = outbox.record(connection, placed(total=3))
        self.assertEqual(recorded(), ids)
        with self.assertRaisesRegex(InvalidConnectionError, "django.db.connection"):
            outbox.record(connection.cursor(), placed(total=3))

    async def test_a_coroutine_records_through_sync_to_async(self) -> None:
        def place() -> list[str]:
            with transaction.atomic():
                Order.objects.create(total=3)
                return record(placed(total=3))

        ids = await sync_to_async(place)()
        self.assertEqual(await sync_to_async(recorded)(), ids)
        with self.assertRaises(SynchronousOnlyOperation):
            record(placed(total=3))


class InTestCase(TestCase):
    def test_the_tables_exist_and_the_query_log_has_the_insert(self) -> None:
        with transaction.atomic(), CaptureQueriesContext(connection) as captured:
            ids = record(placed(total=3))
        self.assertEqual(recorded(), ids)
        self.assertTrue(any("INSERT INTO" in query["sql"] for query in captured))

    def test_the_transaction_of_the_test_alone_is_refused_as_in_production(self) -> None:
        with self.assertRaises(NotInTransactionError):
            record(placed(total=3))
