"""What the pages of events and of dead letters share: list, confirmation, details.

The pages read through `store.admin` and act through the functions of the console and the commands. Each action is in
Pillarbox's audit log under the user's name, and in Django's log of the object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, cast
from urllib.parse import parse_qsl, urlencode

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.contrib.admin.utils import unquote
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied
from django.db import models, transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from pillarbox.core.errors import ConfigurationError, PillarboxError, SchemaError
from pillarbox.integrations.django.admin_store import DeadLetterRows, EventRows, Outcome, Preview, Selection
from pillarbox.ops.console.fields import check_texts
from pillarbox.ops.dead_letter_actions import DeadLetterAction

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[models.Model]
else:
    ModelAdmin = admin.ModelAdmin

View = Callable[..., HttpResponseBase]
_PAST = {"retry": "retried", "discard": "discarded"}


class OutboxAdmin(ModelAdmin):
    """The pages of one kind of row. Rows are neither added, changed nor deleted by Django."""

    rows: ClassVar[type[EventRows] | type[DeadLetterRows]]
    search: ClassVar[tuple[tuple[str, str], ...]]
    sidebar: ClassVar[tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...]]
    columns: ClassVar[tuple[str, ...]]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_urls(self) -> list[URLPattern]:
        name = f"pillarbox_{self.opts.model_name}"
        return [
            path("", self._page(self.list_page), name=f"{name}_changelist"),
            path("action/", self._page(self.action_page), name=f"{name}_action"),
            path("<path:object_id>/change/", self._page(self.detail_page), name=f"{name}_change"),
        ]

    def list_page(self, request: HttpRequest) -> HttpResponseBase:
        """One page of rows."""
        asked = self._asked(request.GET)
        if (found := self._found(asked)) is not None:
            return redirect(found)
        page, status, wrong = None, 200, ""
        try:
            check_texts(asked)
            page = self.rows.page(_with_position(asked, request.GET))
        except PillarboxError as error:
            status, wrong = 400 if isinstance(error, ConfigurationError) else 503, _explained(error)
        more = "" if page is None else getattr(page, "after", None) or getattr(page, "before", None) or ""
        context = {
            "title": f"Select {self.opts.verbose_name} to view",
            "rows": [] if page is None else [self._row(row) for row in page[0]],
            "more": f"?{urlencode(_links(request.GET) | {'after': str(more)})}" if more else "",
            "first": f"?{urlencode(_links(request.GET))}" if "after" in request.GET else "",
            "wrong": wrong,
            "sidebar": [(title, self._choices(request, name, choices)) for title, name, choices in self.sidebar],
            "search": self.search,
            "search_in": request.GET.get("in", self.search[0][0]),
            "q": request.GET.get("q", ""),
            "kept": {name: value for name, value in _links(request.GET).items() if name not in ("q", "in")},
            "actions": self._actions(request),
            "filter": urlencode(_links(request.GET)),
            "action_url": self._url("action"),
        }
        return self._render(request, "pillarbox/admin/list.html", context, status=status)

    def action_page(self, request: HttpRequest) -> HttpResponseBase:
        """Ask for confirmation, then act."""
        action, back = request.POST.get("action", ""), self._url("changelist")
        if request.method != "POST" or action not in self._actions(request):
            raise PermissionDenied
        verb = cast("DeadLetterAction", action)
        query = dict(_pairs(request.POST.get("filter", "")))
        if request.POST.get("select_across") == "1":
            selection = Selection(query=self._asked(query))
        else:
            selection = Selection(chosen=tuple(request.POST.getlist("_selected_action")))
            if not selection.chosen:
                messages.warning(request, f"No {self.rows.plural} selected.")
                return redirect(f"{back}?{urlencode(query)}")
        preview = self.rows.preview(selection)
        if request.POST.get("confirmed") != str(preview.count):
            return self._confirm(request, verb, selection, query, preview)
        outcome = self.rows.act(verb, selection, by=request.user.get_username())
        self._log(request, verb, selection, outcome)
        self._tell(request, verb, outcome)
        return redirect(f"{back}?{urlencode(query)}")

    def detail_page(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        """One row with everything known of it."""
        name = unquote(object_id)
        try:
            check_texts({"id": name})
        except ConfigurationError as error:
            raise Http404(str(error)) from None
        context = self._detail(request, name) | {
            "title": f"View {self.opts.verbose_name}",
            "subtitle": name,
            "actions": self._actions(request),
            "action_url": self._url("action"),
            "log": LogEntry.objects.filter(content_type=self._content_type(), object_id=name).select_related("user"),
        }
        return self._render(request, "pillarbox/admin/detail.html", context)

    def _row(self, row: Any) -> dict[str, Any]:
        """A row of the list: its key in a selection, its page, and its cells in the order of the columns."""
        raise NotImplementedError

    def _detail(self, request: HttpRequest, name: str) -> dict[str, Any]:
        """What the page of a row shows. Raises Http404."""
        raise NotImplementedError

    def _found(self, asked: Mapping[str, str]) -> str | None:
        """The page of the one row that the search names."""
        return None

    def _page(self, view: View) -> View:
        """A page for users with the permission to view. Pillarbox writes on a connection of its own: a transaction
        of the request around it would only hold locks that it waits for."""

        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if not self.has_view_permission(request):
                raise PermissionDenied
            try:
                return view(request, *args, **kwargs)
            except PillarboxError as error:
                messages.error(request, _explained(error))
                return redirect(reverse("admin:index", current_app=self.admin_site.name))

        return transaction.non_atomic_requests(self.admin_site.admin_view(guarded))

    def _render(
        self, request: HttpRequest, template: str, context: dict[str, Any], *, status: int = 200
    ) -> TemplateResponse:
        request.current_app = self.admin_site.name
        common = self.admin_site.each_context(request) | {
            "opts": self.opts,
            "columns": self.columns,
            "list_url": self._url("changelist"),
            "media": self.media,
        }
        return TemplateResponse(request, template, common | context, status=status)

    def _confirm(
        self,
        request: HttpRequest,
        action: DeadLetterAction,
        selection: Selection,
        query: dict[str, str],
        preview: Preview,
    ) -> HttpResponse:
        if request.POST.get("confirmed"):
            messages.warning(request, f"The number of {self.rows.plural} has changed: confirm again.")
        context = {
            "title": "Are you sure?",
            "action": action,
            "count": preview.count,
            "examples": preview.examples,
            "more": preview.count - len(preview.examples),
            "name": self.rows.name if preview.count == 1 else self.rows.plural,
            "chosen": selection.chosen,
            "matching": None if selection.query is None else dict(selection.query),
            "filter": urlencode(query),
            "pending": self.rows is EventRows,
        }
        return self._render(request, "pillarbox/admin/confirm.html", context)

    def _log(self, request: HttpRequest, action: DeadLetterAction, selection: Selection, outcome: Outcome) -> None:
        """One entry per chosen row; one without a row for all matches of a filter."""
        flag = DELETION if action == "discard" else CHANGE
        asked = "Requested: " if outcome.requested and not outcome.done else ""
        everything = [(None, f"{outcome.done + outcome.requested} {self.rows.plural}")]
        about = [self.rows.named(key) for key in selection.chosen] or everything
        LogEntry.objects.bulk_create(
            LogEntry(
                user_id=request.user.pk,
                content_type=self._content_type(),
                object_id=object_id,
                object_repr=text[:200],
                action_flag=flag,
                change_message=f"{asked}{action}" + (f": {dict(selection.query)}" if selection.query else ""),
            )
            for object_id, text in about
        )

    def _tell(self, request: HttpRequest, action: DeadLetterAction, outcome: Outcome) -> None:
        if outcome.done:
            messages.success(request, f"{outcome.done} dead letter{_s(outcome.done)} {_PAST[action]}.")
        if outcome.requested:
            said = f"{outcome.requested} event{_s(outcome.requested)}: the relays that own them were asked to {action}."
            messages.success(request, said if outcome.relay else f"{said} No relay is running: start one.")
        if outcome.skipped:
            messages.warning(request, f"{outcome.skipped} skipped: already pending, delivered or changed meanwhile.")

    def _actions(self, request: HttpRequest) -> dict[str, str]:
        """The actions that the user has the permission for."""
        return {
            action: f"{action.capitalize()} selected {self.rows.plural}"
            for action in ("retry", "discard")
            if may(request, f"{action}_{self.opts.model_name}")
        }

    def _asked(self, query: Mapping[str, str]) -> dict[str, str]:
        """The filter of a list, with the names of the console."""
        asked = {name: query[name] for _, name, _ in self.sidebar if query.get(name)}
        field, text = query.get("in", ""), query.get("q", "").strip()
        if text and field in dict(self.search):
            asked[field] = text
        return asked

    def _choices(
        self, request: HttpRequest, name: str, choices: tuple[tuple[str, str], ...]
    ) -> list[tuple[str, str, bool]]:
        others = {one: value for one, value in _links(request.GET).items() if one != name}
        now = request.GET.get(name, "")
        return [
            (label, f"?{urlencode(others | ({name: value} if value else {}))}", value == now)
            for value, label in choices
        ]

    def _url(self, page: str, *arguments: str) -> str:
        name = f"admin:pillarbox_{self.opts.model_name}_{page}"
        return reverse(name, args=arguments, current_app=self.admin_site.name)

    def _content_type(self) -> ContentType:
        return ContentType.objects.get_for_model(self.model)


def _with_position(asked: dict[str, str], query: Mapping[str, str]) -> dict[str, str]:
    return asked | ({"after": query["after"]} if query.get("after") else {})


def _links(query: Mapping[str, str]) -> dict[str, str]:
    """The state of a list without its position."""
    return {name: query[name] for name in ("state", "since", "in", "q") if query.get(name)}


def _pairs(text: str) -> list[tuple[str, str]]:
    return [(name, value) for name, value in parse_qsl(text) if name in ("state", "since", "in", "q")]


def may(request: HttpRequest, permission: str) -> bool:
    user: Any = request.user
    return bool(user.has_perm(f"pillarbox.{permission}"))


def _explained(error: PillarboxError) -> str:
    return f"{error} (here: `manage.py migrate pillarbox`)" if isinstance(error, SchemaError) else str(error)


def _s(count: int) -> str:
    return "" if count == 1 else "s"
