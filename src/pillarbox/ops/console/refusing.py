"""What is answered where there is no page: why not, what to try next, and to whom nobody knows, the way in."""

from __future__ import annotations

from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from pillarbox.core.errors import PillarboxError
from pillarbox.ops.console.desk import Desk
from pillarbox.ops.json_response import SafeJSONResponse

FOR_MACHINES = ("/api/", "/metrics")
"""What scripts and scrapers ask for: they are told that they need a password, not led to the login page."""
_WITH_FORMS = ("/dead", "/destinations", "/events", "/keys", "/relays")


def desk_of(request: Request) -> Desk:
    desk: Desk = request.app.state.desk
    return desk


def refusal(request: Request, status: int, why: str) -> Response:
    """Why there is no such page."""
    base, path = _place(request)
    if path.startswith(FOR_MACHINES):
        return SafeJSONResponse({"error": why}, status_code=status)
    desk = desk_of(request)
    again = f"{base}{_asked(request)}" if status == 503 and request.method == "GET" else ""
    drawn = desk.templates.get_template("refusal.html").render(
        base=base, status=status, why=why, again=again, title_of_console=desk.title
    )
    return HTMLResponse(drawn, status_code=status)


def unanswered(request: Request, error: PillarboxError) -> Response:
    """The store did not do it; whatever a relay would do, here nothing is tried again by itself."""
    why = str(error)
    if request.method != "GET":
        why += ". It is not tried again by itself: look whether it was done, and if not, do it again."
    return refusal(request, 503, why)


def unknown(request: Request) -> Response:
    """To the login, and from there back to the page that was looked at."""
    desk, (base, path) = desk_of(request), _place(request)
    if not desk.login.page or path.startswith(FOR_MACHINES):
        answer = refusal(request, 401, "You are not logged in.")
        # Our own pages ask, too, when their login has ended: a browser would bring up a window of its own.
        if desk.login.page and "sec-fetch-site" not in request.headers:
            answer.headers["www-authenticate"] = 'Basic realm="pillarbox"'
        return answer
    if "hx-request" in request.headers:
        # A part of a page is asked for: the login would be drawn into it.
        answer = refusal(request, 401, "Your login has ended.")
        answer.headers["hx-refresh"] = "true"
        return answer
    wanted = _asked(request) if request.method == "GET" else _page_of(path)
    return RedirectResponse(f"{base}/login?{urlencode({'next': wanted})}", status_code=303)


def _place(request: Request) -> tuple[str, str]:
    """What every path of ours begins with, and the path without it."""
    base = str(request.scope.get("root_path", "")).rstrip("/")
    return base, request.url.path.removeprefix(base)


def _asked(request: Request) -> str:
    return _place(request)[1] + (f"?{request.url.query}" if request.url.query else "")


def _page_of(path: str) -> str:
    """The page to which the path of a form belongs; browsers are told to keep back on which one it was."""
    return next((page for page in _WITH_FORMS if path.startswith(f"{page}/")), "/")
