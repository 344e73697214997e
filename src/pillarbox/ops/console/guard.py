"""The middleware that every request passes.

Invariants: every response has the security headers; a request that writes comes from a page of the console or from no
page at all; without a login only this machine has access.

Browsers attach an operator's session, and a password they have cached for HTTP Basic, to requests of any page on any
site. A browser sends `Origin` with every POST, so a POST without it comes from a script. `Origin: null` (a sandboxed
frame, a `data:` page, a page with `no-referrer`) can have any source and is rejected. Pages of the console send their
real origin, because their referrer policy is `same-origin`, which hides it from other sites.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pillarbox.ops.console.errors import MACHINE_PATHS

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_READS = ("GET", "HEAD")


class Guard:
    """ASGI middleware. local_only: without a login, only host names of this machine are accepted."""

    def __init__(self, app: ASGIApp, *, local_only: bool, origins: Sequence[str] = ()) -> None:
        """origins: the origins that browsers send if a proxy changes the host, such as https://ops.example.com."""
        self._app = app
        self._local_only = local_only
        self._origins = {origin.rstrip("/").lower() for origin in origins}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        request = Request(scope)
        if not _is_readable(request):
            await _refuse(request, 400, "The request cannot be decoded.")(scope, receive, send_guarded)
        elif reason := self._rejection(request):
            await _refuse(request, 403, reason)(scope, receive, send_guarded)
        else:
            await self._app(scope, receive, send_guarded)

    def _rejection(self, request: Request) -> str:
        host = request.headers.get("host", "")
        # DNS rebinding: another site can make its own name resolve to this machine.
        if self._local_only and not is_local(urlsplit(f"//{host}").hostname or ""):
            return "This console has no login and accepts host names of its own machine only."
        foreign = request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none")
        # Other sites may link to pages of the console, and nothing else.
        followed = request.method in _READS and request.headers.get("sec-fetch-mode") == "navigate"
        if foreign and not followed:
            return "This request came from a page of another site."
        if request.method in _READS:
            return ""
        for origin in request.headers.getlist("origin"):
            if urlsplit(origin).netloc != host and origin.lower() not in self._origins:
                return (
                    f"This request came from a page of another site, {origin[:100]!r}. If a proxy changes the host, "
                    "add this origin to console.origins."
                )
        return ""


def _refuse(request: Request, status: int, reason: str) -> Response:
    """Return plain text, or the error object of the API."""
    # Not `request.url`: a request with an undecodable host has none.
    prefix = str(request.scope.get("root_path", "")).rstrip("/")
    if str(request.scope["path"]).removeprefix(prefix).startswith(MACHINE_PATHS):
        return JSONResponse({"error": reason}, status_code=status)
    return PlainTextResponse(reason, status_code=status)


def _is_readable(request: Request) -> bool:
    """Whether query, host and origin can be parsed."""
    host = request.headers.get("host", "")
    try:
        request.scope["query_string"].decode()
        for origin in request.headers.getlist("origin"):
            urlsplit(origin)
        return urlsplit(f"//{host}").netloc == host
    except ValueError:
        return False


def is_local(host: str) -> bool:
    """Whether a host name or address is loopback."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
