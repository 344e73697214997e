"""The door: every request passes here, whatever it asks for.

What must stay true: every answer carries the headers that keep browsers from running, framing or storing what they
should not; a request that writes comes from one of our own pages; without a login nobody but this machine gets in.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_READS = ("GET", "HEAD")


class Guard:
    """ASGI middleware. `local_only`: no login, so only names of this machine are answered."""

    def __init__(self, app: ASGIApp, *, local_only: bool, origins: Sequence[str] = ()) -> None:
        """origins: what browsers call us where a proxy changes the host, such as https://ops.example.com."""
        self._app = app
        self._local_only = local_only
        self._hosts = {urlsplit(origin).netloc for origin in origins}

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
            await PlainTextResponse("This request cannot be read.", status_code=400)(scope, receive, send_guarded)
        elif refusal := self._refusal(request):
            await PlainTextResponse(refusal, status_code=403)(scope, receive, send_guarded)
        else:
            await self._app(scope, receive, send_guarded)

    def _refusal(self, request: Request) -> str:
        host = request.headers.get("host", "")
        # A page elsewhere may make its own name point to this machine; the name gives it away.
        if self._local_only and not is_local(urlsplit(f"//{host}").hostname or ""):
            return "This console has no login and answers to the names of its own machine only."
        if request.method in _READS:
            return ""
        # `no-referrer` makes browsers send `Origin: null` with our own forms, so that one says nothing by itself.
        origin = request.headers.get("origin", "null")
        if origin != "null" and urlsplit(origin).netloc not in {host, *self._hosts}:
            return "This request came from a page of another site. If a proxy changes the host, set console.origins."
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return "This request came from a page of another site."
        return ""


def _is_readable(request: Request) -> bool:
    """Whether the parts of its address are what they are called."""
    host, origin = (request.headers.get(name, "") for name in ("host", "origin"))
    try:
        request.scope["query_string"].decode()
        urlsplit(origin)
        return urlsplit(f"//{host}").netloc == host
    except ValueError:
        return False


def is_local(host: str) -> bool:
    """Whether only this machine can be meant."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
