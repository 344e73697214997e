"""Relays, consumers and commands with Django's settings and connections."""

import json
from io import StringIO
from typing import Any

from django.core.management import CommandError, call_command
from django.db import transaction
from django.test import TransactionTestCase, override_settings

from pillarbox import ConfigurationError, Event
from pillarbox.integrations.django import record
from pillarbox.integrations.django.configuration import load_settings
from pillarbox.integrations.django.testing import clear_outbox, run_relay

from .models import Note
from .outbox import recorded, rows


def committed(event_type: str, **payload: Any) -> str:
    """The id of an event that is committed."""
    with transaction.atomic():
        [event_id] = record(Event(event_type, payload))
    return event_id


def called(*arguments: str) -> Any:
    """What a command prints as JSON."""
    output = StringIO()
    call_command(*arguments, "--json", stdout=output)
    return json.loads(output.getvalue())


class Relays(TransactionTestCase):
    databases = {"default", "second"}

    def setUp(self) -> None:
        clear_outbox()
        clear_outbox("second")

    def test_sync_and_async_handlers_use_models(self) -> None:
        first, second = committed("order.placed"), committed("order.placed")
        self.assertEqual((run_relay(), recorded()), (0, []))
        expected = {f"{kind} {event_id}" for kind in ("sync", "async") for event_id in (first, second)}
        self.assertEqual({note.text for note in Note.objects.all()}, expected)

    def test_a_relay_runs_again_in_the_same_process(self) -> None:
        for _ in range(2):
            committed("order.placed")
            self.assertEqual(run_relay(), 0)
        self.assertEqual(Note.objects.count(), 4)

    def test_a_handler_gets_a_new_connection_after_one_that_is_broken(self) -> None:
        for _ in range(3):
            committed("connection.ended")
        self.assertEqual((run_relay(), rows("id", "dead_letter")), (0, []))
        self.assertEqual(Note.objects.count(), 3)

    def test_a_failing_handler_makes_a_dead_letter(self) -> None:
        event_id = committed("order.failed", why="it is broken")
        run_relay()
        [(found, error)] = rows("event_id, error", "dead_letter")
        self.assertEqual(found, event_id)
        self.assertIn("cannot handle it is broken", error)

    def test_a_consumer_handles_an_event_once_in_a_transaction_of_django(self) -> None:
        event_id = committed("order.counted")
        run_relay()
        with transaction.atomic():
            record(Event("order.counted", {}, event_id=event_id))
        run_relay()
        self.assertEqual([note.text for note in Note.objects.all()], [f"counted {event_id}"])

    def test_the_relay_of_another_database_sends_its_events_only(self) -> None:
        committed("order.placed")
        with transaction.atomic(using="second"):
            record(Event("order.placed", {}), using="second")
        self.assertEqual((run_relay("second"), recorded("second"), len(recorded())), (0, [], 1))

    def test_commands_have_the_settings_of_django(self) -> None:
        event_id = committed("order.failed", why="x")
        run_relay()
        self.assertEqual(called("pillarbox_status")["dead_letters"], 1)
        [listed] = called("pillarbox_dead", "list")["dead_letters"]
        self.assertEqual(listed["event_id"], event_id)
        [shown] = called("pillarbox", "events", "list")["events"]
        self.assertEqual(shown["event_id"], event_id)
        self.assertEqual(called("pillarbox", "events", "list", "--database", "second")["events"], [])
        url = next(one for one in called("pillarbox", "config", "show")["settings"] if one["key"] == "store.url")
        self.assertEqual(url["origin"], "DATABASES['default']")

    def test_commands_name_commands_of_django(self) -> None:
        call_command("pillarbox_status", stdout=(said := StringIO()))
        self.assertIn("`manage.py pillarbox relay`", said.getvalue())
        self.assertNotIn("`pillarbox ", said.getvalue())
        self.assertIn("`manage.py pillarbox relay`", called("pillarbox_status")["reason"])
        with self.assertRaises(SystemExit):
            call_command("pillarbox_dead", "show", "missing", stderr=(said := StringIO()))
        self.assertIn("`manage.py pillarbox events show`", said.getvalue())

    def test_what_commands_print_of_events_is_not_changed(self) -> None:
        committed("order.failed", why="run `pillarbox relay`")
        run_relay()
        call_command("pillarbox_dead", "export", stdout=(said := StringIO()))
        self.assertIn("run `pillarbox relay`", said.getvalue())

    def test_a_relay_within_a_transaction_is_refused(self) -> None:
        with transaction.atomic(), self.assertRaisesRegex(ConfigurationError, "TransactionTestCase"):
            run_relay()

    def test_a_command_fails_with_its_exit_code_and_a_wrong_flag_is_explained(self) -> None:
        with self.assertRaises(SystemExit) as failed:
            call_command("pillarbox_dead", "show", "missing", stderr=StringIO())
        self.assertEqual(failed.exception.code, 4)
        with self.assertRaisesRegex(CommandError, "KEY=VALUE"):
            call_command("pillarbox_status", "--set", "relay.batch_size")
        with self.assertRaises(SystemExit) as unknown:
            call_command("pillarbox_status", "--set", "relay.batchsize=3", stderr=(said := StringIO()))
        self.assertEqual(unknown.exception.code, 2)
        self.assertIn("relay.batch_size", said.getvalue())

    def test_the_address_of_the_store_comes_from_databases_only(self) -> None:
        with (
            override_settings(PILLARBOX={"store": {"url": "sqlite:///elsewhere.db"}}),
            self.assertRaisesRegex(ConfigurationError, r"DATABASES\['default'\] decides on it"),
        ):
            load_settings()
        with self.assertRaisesRegex(ConfigurationError, "DATABASES has no database 'third'"):
            load_settings("third")
