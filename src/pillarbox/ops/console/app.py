"""The console as an ASGI application: serve it on its own port, or mount it in your application.

    console = Console(store, login=HostLogin(who))
    app.mount("/outbox", console)

The application that opens the store also closes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

try:
    import_module("jinja2")  # the templates need it; a missing package is reported here
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute, Match, Mount, Route
    from starlette.staticfiles import StaticFiles
    from starlette.types import Receive, Scope, Send
except ImportError as missing:  # pragma: no cover - shown by the test of the bare wheel
    raise ImportError('the console needs more packages: pip install "pillarbox[console]"') from missing

from pillarbox.admin.admin import AdminStore
from pillarbox.core.clock import Duration, seconds
from pillarbox.core.payload import Size, payload_limit
from pillarbox.ops.console import api
from pillarbox.ops.console.access import Role
from pillarbox.ops.console.context import ConsoleContext
from pillarbox.ops.console.doctor_report import DoctorReportCache
from pillarbox.ops.console.errors import error_response
from pillarbox.ops.console.guard import Guard
from pillarbox.ops.console.logins import Login, NoLogin
from pillarbox.ops.console.masked_store import masked_store
from pillarbox.ops.console.masking import Masks
from pillarbox.ops.console.pages import (
    audit,
    dead_letter_edit,
    dead_letters,
    destinations,
    events,
    keys,
    metrics,
    operator_requests,
    overview,
    probes,
    relays,
    replays,
    store,
)
from pillarbox.ops.console.pages import login as login_page
from pillarbox.ops.console.request import action, page, public_route
from pillarbox.ops.console.sessions import Signer
from pillarbox.ops.console.timeouts import LONG_TIMEOUT
from pillarbox.ops.settings import Settings
from pillarbox.ops.settings.console import ConsoleOptions
from pillarbox.settings.shared import DEFAULT_MAX_PAYLOAD

_STATIC = Path(__file__).parent / "static"


class Console:
    """The pages and the API of one store. Raises ConfigurationError."""

    def __init__(
        self,
        store: AdminStore,
        *,
        login: Login,
        read_only: bool = False,
        mask: Sequence[str] = ConsoleOptions.mask,
        slo: Duration = ConsoleOptions.slo,
        session: Duration = ConsoleOptions.session,
        secret: str = "",
        origins: Sequence[str] = ConsoleOptions.origins,
        title: str = ConsoleOptions.title,
        max_payload: Size = DEFAULT_MAX_PAYLOAD,
        settings: Settings | None = None,
    ) -> None:
        """Create a console.

        secret: signs cookies; '' generates one, and all sessions end with the process. origins: the origins that
        browsers send if a proxy changes the host. max_payload: the limit of an edited event, as of the `Outbox`.
        settings: for the doctor.
        """
        ConsoleOptions(mask=mask, slo=slo, session=session, origins=origins, title=title)  # checks
        masks = Masks(mask)
        self.context = ConsoleContext(
            store=masked_store(store, masks),
            login=login,
            signer=Signer(secret),
            masks=masks,
            slo=seconds(slo),
            session=seconds(session),
            read_only=read_only,
            title=title,
            outbox=settings.store.outbox_name if settings is not None else title,
            max_payload=payload_limit(max_payload),
            doctor=None if settings is None else DoctorReportCache(settings, store),
            destinations=() if settings is None else settings.destinations,
            routes=() if settings is None else settings.routes,
            retention=None if settings is None else settings.relay.config.retention.in_seconds.inbox,
        )
        pages = Starlette(
            routes=[*_page_routes(), *([] if read_only else _action_routes()), *_login_routes(login)],
            exception_handlers={404: _no_page, 405: _no_method},
        )
        pages.state.context = self.context
        # It would redirect to the host that the request names, which can be forged.
        pages.router.redirect_slashes = False
        # Outermost, so that the responses of unhandled exceptions have the security headers, too.
        self._app = Guard(pages, local_only=isinstance(login, NoLogin), origins=origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    def stop(self) -> None:
        """End live connections, so that a server can close its port."""
        self.context.closing = True


class _Files(StaticFiles):
    """Static files that browsers may cache, because their URLs change with the release."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        answer = super().file_response(*args, **kwargs)
        answer.headers["cache-control"] = "public, max-age=86400"
        return answer


def _page_routes() -> list[BaseRoute]:
    return [
        page("/", overview.overview),
        page("/live", overview.live),
        page("/events", events.events),
        page("/event", events.event),
        page("/event/payload", events.payload),
        page("/dead", dead_letters.dead),
        page("/dead/export", dead_letters.export),
        page("/destinations", destinations.destinations),
        page("/destination", destinations.destination),
        page("/keys", keys.keys),
        page("/relays", relays.relays),
        page("/inbox", store.inbox),
        page("/store", store.store, timeout=LONG_TIMEOUT),
        page("/audit", audit.audit),
        page("/audit/export", audit.export_audit),
        page("/metrics", metrics.metrics),
        public_route("/livez", probes.livez, method="GET"),
        public_route("/readyz", probes.readyz, method="GET"),
        *api.query_routes(),
        Mount("/static", _Files(directory=_STATIC)),
    ]


def _action_routes() -> list[BaseRoute]:
    return [
        action("/event/act", operator_requests.act_on_event),
        page("/dead/decide", dead_letters.confirm, timeout=LONG_TIMEOUT),
        action("/dead/decide", dead_letters.decide),
        page("/dead/edit", dead_letter_edit.edit),
        action("/dead/edit", dead_letter_edit.decide),
        page("/events/decide", operator_requests.confirm_pending, timeout=LONG_TIMEOUT),
        action("/events/decide", operator_requests.decide_pending),
        page("/replay", replays.confirm, timeout=LONG_TIMEOUT),
        action("/replay", replays.begin),
        action("/everything", operator_requests.pause_all),
        action("/destinations/override", destinations.override),
        action("/keys/act", keys.post_action),
        page("/keys/decide", keys.confirm, timeout=LONG_TIMEOUT),
        action("/keys/decide", keys.decide),
        action("/relays/drain", relays.drain),
        *api.action_routes(),
    ]


def _login_routes(login: Login) -> list[BaseRoute]:
    if not login.page:
        return []
    return [
        public_route("/login", login_page.show_login, method="GET"),
        public_route("/login", login_page.login, method="POST"),
        action("/logout", login_page.logout, needs=Role.VIEWER),
    ]


async def _no_page(request: Request, error: Exception) -> Response:
    return error_response(request, 404, f"There is no page {request.url.path}.")


async def _no_method(request: Request, error: Exception) -> Response:
    # A path may have a route for each method; Starlette names the methods of one of them.
    routes = [route for route in request.app.routes if isinstance(route, Route)]
    known = {
        method for one in routes if one.matches(request.scope)[0] is not Match.NONE for method in one.methods or ()
    }
    allowed = ", ".join(sorted(known))
    answer = error_response(request, 405, f"{request.url.path} does not support {request.method}: use {allowed}.")
    answer.headers["allow"] = allowed
    return answer
