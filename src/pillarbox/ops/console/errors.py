"""Error responses: a page or JSON with the reason and the next step, or a redirect to the login page."""

from __future__ import annotations

from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from pillarbox.core.errors import PillarboxError
from pillarbox.ops.console.context import ConsoleContext
from pillarbox.ops.json_response import SafeJSONResponse

MACHINE_PATHS = ("/api/", "/metrics")
"""Paths for scripts and scrapers: without a login they get status 401 instead of the login page."""
_PAGES_WITH_FORMS = ("/dead", "/destinations", "/events", "/keys", "/relays")


def context_of(request: Request) -> ConsoleContext:
    context: ConsoleContext = request.app.state.context
    return context


def error_response(request: Request, status: int, message: str, **facts: bool) -> Response:
    """Return an error page, or JSON for scripts, which also has the `facts`."""
    base, path = _split_path(request)
    if path.startswith(MACHINE_PATHS):
        return SafeJSONResponse({"error": message, **facts}, status_code=status)
    context = context_of(request)
    reload_url = f"{base}{_path_and_query(request)}" if status == 503 and request.method == "GET" else ""
    html = context.templates.get_template("error.html").render(
        base=base, status=status, message=message, reload_url=reload_url, title_of_console=context.title
    )
    return HTMLResponse(html, status_code=status)


def store_error_response(request: Request, error: PillarboxError) -> Response:
    """Return the error of the store. The console does not retry a request by itself."""
    message = str(error)
    if request.method != "GET":
        message += ". The console does not retry: check whether the action was executed, and repeat it if not."
    return error_response(request, 503, message, retryable=error.retryable)


def login_required(request: Request) -> Response:
    """Redirect to the login page, which leads back to the requested page; scripts get status 401."""
    context, (base, path) = context_of(request), _split_path(request)
    if not context.login.page or path.startswith(MACHINE_PATHS):
        answer = error_response(request, 401, "You are not logged in.")
        # Pages of the console request it, too, after their session has ended: a browser would open its own dialog.
        if context.login.page and "sec-fetch-site" not in request.headers:
            answer.headers["www-authenticate"] = 'Basic realm="pillarbox"'
        return answer
    if "hx-request" in request.headers:
        # htmx would insert the login page into a part of the current page.
        answer = error_response(request, 401, "Your login has ended.")
        answer.headers["hx-refresh"] = "true"
        return answer
    next_page = _path_and_query(request) if request.method == "GET" else _page_of(path)
    return RedirectResponse(f"{base}/login?{urlencode({'next': next_page})}", status_code=303)


def _split_path(request: Request) -> tuple[str, str]:
    """Return the prefix of every path, and the path without it."""
    base = str(request.scope.get("root_path", "")).rstrip("/")
    return base, request.url.path.removeprefix(base)


def _path_and_query(request: Request) -> str:
    return _split_path(request)[1] + (f"?{request.url.query}" if request.url.query else "")


def _page_of(path: str) -> str:
    """Return the page that has the form of a path; the referrer policy hides it from us."""
    return next((page for page in _PAGES_WITH_FORMS if path.startswith(f"{page}/")), "/")
