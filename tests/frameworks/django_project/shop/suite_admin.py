"""The admin: what users see and may do, and what the logs say about it."""

import re
from html import unescape
from typing import Any

from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.db import connections, transaction
from django.test import TransactionTestCase, override_settings

from pillarbox import Event
from pillarbox.integrations.django import record
from pillarbox.integrations.django.testing import clear_outbox, run_relay

from .outbox import recorded, rows

EVENTS, DEAD = "/admin/pillarbox/event/", "/admin/pillarbox/deadletter/"
EVERYTHING = (
    "view_event",
    "retry_event",
    "discard_event",
    "view_payload",
    "view_deadletter",
    "retry_deadletter",
    "discard_deadletter",
)


def committed(*events: Event) -> list[str]:
    with transaction.atomic():
        return record(*events)


def failed(count: int = 1, why: str = "why <b>not</b>", **more: Any) -> list[str]:
    """The ids of dead letters, in order."""
    ids = committed(*(Event("order.failed", {"why": why, "card": "4111"}, **more) for _ in range(count)))
    run_relay()
    return ids


def keys(response: Any) -> list[str]:
    """The rows of a list that an action can select."""
    return re.findall(r'name="_selected_action" value="([^"]+)"', response.content.decode())


class Pages(TransactionTestCase):
    def setUp(self) -> None:
        clear_outbox()
        self.sign_in(*EVERYTHING)

    def sign_in(self, *permissions: str) -> None:
        user, _ = User.objects.get_or_create(username="ada", is_staff=True)
        user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
        self.client.force_login(user)

    def text(self, url: str, status: int = 200) -> str:
        response = self.client.get(url)
        self.assertEqual(response.status_code, status)
        return response.content.decode()

    def act(self, url: str, action: str, *rows: str, confirmed: int | None = None, **more: str) -> str:
        form = {"action": action, "_selected_action": list(rows), **more}
        if confirmed is not None:
            form["confirmed"] = str(confirmed)
        response = self.client.post(f"{url}action/", form, follow=True)
        self.assertEqual(response.status_code, 200)
        return response.content.decode()

    def test_lists_show_events_and_dead_letters(self) -> None:
        [event_id] = failed()
        [pending] = committed(Event("order.placed", {}))
        self.assertEqual([name in self.text(EVENTS) for name in (event_id, pending)], [True, True])
        listed = self.text(DEAD)
        self.assertEqual([name in listed for name in (event_id, pending)], [True, False])
        self.assertIn("cannot handle why &lt;b&gt;not&lt;/b&gt;", listed)

    def test_filters_and_search_narrow_a_list(self) -> None:
        [event_id] = failed(key="customer 1")
        [pending] = committed(Event("order.placed", {}, key="100%"))
        for query, names in (
            ("state=ready", [pending]),
            ("state=dead_lettered", [event_id]),
            ("in=type&q=order.placed", [pending]),
            ("in=key&q=100%25", [pending]),
            ("in=destination&q=failing", [event_id]),
            ("in=error&q=cannot+handle", [event_id]),
            ("in=key&q=nothing", []),
            ("since=1h", [pending, event_id]),
        ):
            with self.subTest(query):
                listed = self.text(f"{EVENTS}?{query}")
                self.assertEqual([name for name in (pending, event_id) if name in listed], names)
        self.assertIn(event_id, self.text(f"{DEAD}?in=id&q={event_id}"))
        self.assertRedirects(self.client.get(f"{EVENTS}?in=id&q={event_id}"), f"{EVENTS}{event_id}/change/")

    def test_a_long_list_has_pages(self) -> None:
        ids = committed(*(Event("order.placed", {}) for _ in range(60)))
        first = self.text(EVENTS)
        [older] = re.findall(r'href="(\?after=[^"]+)">Older', first)
        second = self.text(EVENTS + older.replace("&amp;", "&"))
        self.assertEqual([name for name in ids if name in first and name in second], [])
        self.assertEqual([name for name in ids if name not in first and name not in second], [])

    def test_a_wrong_filter_is_explained(self) -> None:
        self.assertIn("is unknown: use ready", self.text(f"{EVENTS}?state=lost", status=400))
        self.assertIn("is not a position in a list", self.text(f"{EVENTS}?after=x", status=400))
        self.assertIn("which no store can hold", self.text(f"{EVENTS}?in=key&q=a%00b", status=400))

    def test_details_show_the_masked_payload_to_users_with_the_permission(self) -> None:
        [event_id] = failed(headers={"authorization": "secret"})
        shown = self.text(f"{EVENTS}{event_id}/change/")
        self.assertIn("cannot handle", shown)
        self.assertIn("•••", shown)
        self.assertNotIn("4111", shown)
        self.assertNotIn("secret", shown)
        [number] = keys(self.client.get(DEAD))
        self.assertIn("application/json", self.text(f"{DEAD}{number}/change/"))
        self.sign_in("view_event", "view_deadletter")
        for page in (f"{EVENTS}{event_id}/change/", f"{DEAD}{number}/change/"):
            self.assertIn("You do not have the permission to view payloads", self.text(page))
            self.assertNotIn("•••", self.text(page))

    def test_what_does_not_exist_is_not_found(self) -> None:
        for page in (
            f"{EVENTS}missing/change/",
            f"{EVENTS}a%00b/change/",
            f"{DEAD}7/change/",
            f"{DEAD}x/change/",
            f"{DEAD}{'9' * 30}/change/",
        ):
            self.text(page, status=404)

    def test_event_ids_with_slashes_and_quotes_have_pages(self) -> None:
        strange = """a/b?c=1#d "e" 'f' ü,g_2F"""
        committed(Event("order.placed", {}, event_id=strange))
        [key] = [unescape(one) for one in keys(self.client.get(EVENTS))]
        [link] = re.findall(rf'<th><a href="({EVENTS}[^"]+)"', self.text(EVENTS))
        self.assertIn("order.placed", self.text(unescape(link)))
        self.assertIn("asked to discard", self.act(EVENTS, "discard", key, confirmed=1))
        self.assertEqual((run_relay(), recorded()), (0, []))
        self.assertEqual(LogEntry.objects.get().object_id, strange)

    def test_a_retried_dead_letter_is_pending_again_and_audited_in_both_logs(self) -> None:
        ids = failed(2)
        chosen = keys(self.client.get(DEAD))
        asked = self.act(DEAD, "retry", *chosen)
        self.assertIn("Retry <strong>2 dead letters</strong>?", asked)
        self.assertIn(f"order.failed {ids[0]} → failing: RejectedError", asked)
        self.assertEqual((recorded(), LogEntry.objects.count()), ([], 0))
        self.assertIn("2 dead letters retried.", self.act(DEAD, "retry", *chosen, confirmed=2))
        self.assertEqual((sorted(recorded()), rows("id", "dead_letter")), (sorted(ids), []))
        [(who, what, count)] = rows("who, what, count", "audit", order="audit_id")
        self.assertEqual((who, what, count), ("ada", "retry", 2))
        entries = LogEntry.objects.order_by("object_id")
        self.assertEqual(
            [(one.object_id, one.change_message) for one in entries], [(one, "retry") for one in sorted(chosen)]
        )
        self.assertIn("ada", self.text(f"{EVENTS}{ids[0]}/change/"))

    def test_all_matches_of_a_filter_are_discarded_only_if_their_number_is_confirmed(self) -> None:
        failed(3, why="first")
        failed(1, why="second")
        form: dict[str, Any] = {"select_across": "1", "filter": "in=error&q=first"}
        self.assertIn("Discard <strong>3 dead letters</strong>?", self.act(DEAD, "discard", **form))
        failed(1, why="first")
        self.assertIn("has changed: confirm again", self.act(DEAD, "discard", confirmed=3, **form))
        self.assertEqual(len(rows("id", "dead_letter")), 5)
        self.assertIn("4 dead letters discarded.", self.act(DEAD, "discard", confirmed=4, **form))
        self.assertEqual(len(rows("id", "dead_letter")), 1)
        [entry] = LogEntry.objects.all()
        self.assertEqual((entry.object_repr, entry.object_id), ("4 dead letters", None))

    def test_pending_events_are_requested_of_the_relay(self) -> None:
        first, second = committed(Event("order.placed", {}), Event("order.placed", {}))
        chosen = [key for key in keys(self.client.get(EVENTS)) if key.startswith(first)]
        self.assertIn("asked to discard. No relay is running", self.act(EVENTS, "discard", *chosen, confirmed=1))
        self.assertIn("discard", self.text(f"{EVENTS}{first}/change/"))
        run_relay()
        self.assertEqual({event_id for (event_id,) in rows("event_id", "history", order="event_id")}, {second})
        self.assertIn(("ada", "discard", first), rows("who, what, subject", "audit", order="audit_id"))

    def test_a_delivered_event_cannot_be_retried(self) -> None:
        committed(Event("order.placed", {}))
        run_relay()
        chosen = keys(self.client.get(EVENTS))
        self.assertIn("None of the selected rows can be retried", self.act(EVENTS, "retry", *chosen))

    def test_nothing_selected(self) -> None:
        self.assertIn("No dead letters selected.", self.act(DEAD, "retry"))

    def test_each_permission_allows_its_own_action(self) -> None:
        failed(1)
        [number] = keys(self.client.get(DEAD))
        for held, action, allowed in (
            ((), "retry", False),
            (("view_deadletter",), "retry", False),
            (("view_deadletter", "discard_deadletter"), "retry", False),
            (("view_deadletter", "retry_deadletter"), "discard", False),
            (("retry_deadletter",), "retry", False),
            (("view_deadletter", "retry_event", "view_event"), "retry", False),
            (("view_deadletter", "retry_deadletter"), "retry", True),
        ):
            with self.subTest(held=held, action=action):
                self.sign_in(*held)
                form = {"action": action, "_selected_action": [number], "confirmed": "1"}
                status = self.client.post(f"{DEAD}action/", form).status_code
                self.assertEqual((status, len(rows("id", "dead_letter"))), (302, 0) if allowed else (403, 1))

    def test_pages_need_a_login_and_the_permission_to_view(self) -> None:
        self.sign_in("view_deadletter")
        self.assertEqual([self.client.get(url).status_code for url in (EVENTS, DEAD)], [403, 200])
        self.assertNotIn("action-select", self.text(DEAD))
        self.client.logout()
        self.assertEqual([self.client.get(url).status_code for url in (EVENTS, DEAD, f"{EVENTS}x/change/")], [302] * 3)

    def test_an_action_needs_a_post_with_a_token(self) -> None:
        self.assertEqual(self.client.get(f"{DEAD}action/").status_code, 403)
        strict = self.client_class(enforce_csrf_checks=True)
        strict.force_login(User.objects.get(username="ada"))
        self.assertEqual(strict.post(f"{DEAD}action/", {"action": "retry"}).status_code, 403)

    def test_pages_work_with_atomic_requests(self) -> None:
        failed(1)
        connection = connections["default"]
        connection.settings_dict["ATOMIC_REQUESTS"] = True
        try:
            [number] = keys(self.client.get(DEAD))
            self.assertIn("1 dead letter retried.", self.act(DEAD, "retry", number, confirmed=1))
        finally:
            connection.settings_dict["ATOMIC_REQUESTS"] = False

    def test_missing_tables_are_explained(self) -> None:
        with override_settings(PILLARBOX={"store": {"prefix": "moved_"}}):
            self.assertIn("manage.py migrate", self.text(EVENTS, status=503))
