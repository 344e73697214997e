"""Requests to the console. Every page and every action is a function of a `ConsoleRequest`.

Invariant: a page needs a login. An action also needs a role, and proof that no page of another site made the request.
Both are checked where routes are created, so that no page can omit the check.

The proof is a CSRF token of a page of the console. A script that sends its password with each request (HTTP Basic)
needs no token for the API, which reads JSON only: other sites can make a browser send a form with a cached password,
but not a body of type `application/json`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, cast
from urllib.parse import parse_qsl, urlencode

from starlette.background import BackgroundTask
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from pillarbox.admin.admin import AdminStore
from pillarbox.core.errors import ConfigurationError, PillarboxError, RecordError
from pillarbox.ops.console.access import Role, User
from pillarbox.ops.console.context import ConsoleContext
from pillarbox.ops.console.errors import context_of, error_response, login_required, store_error_response
from pillarbox.ops.console.fields import TOKEN, check_texts
from pillarbox.ops.console.logins import AuthenticatedUser, TooManyAttemptsError, UsersUnavailableError
from pillarbox.ops.console.sessions import NOTICE, is_valid_token, make_token, open_notice, sign_notice
from pillarbox.ops.console.timeouts import TIMEOUT, within

BODY = 2 * 1024 * 1024
"""Maximum number of bytes of a form or a request to the API."""

BODY_TIMEOUT = 30.0
"""Seconds in which the body must arrive."""

NAVIGATION = (
    ("/", "Overview", "o"),
    ("/events", "Events", "e"),
    ("/dead", "Dead letters", "d"),
    ("/destinations", "Destinations", "t"),
    ("/keys", "Ordering keys", "k"),
    ("/relays", "Relays", "r"),
    ("/inbox", "Inbox", "i"),
    ("/store", "Store", "s"),
    ("/audit", "Audit", "a"),
)


class RequestError(Exception):
    """A request that fails with an HTTP status and a message for the user."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


@dataclass(kw_only=True)
class ConsoleRequest:
    """A request of a logged-in user.

    form: the fields of a posted form, or the members of the posted JSON object.
    """

    context: ConsoleContext
    http: Request
    identity: AuthenticatedUser
    form: Mapping[str, Any] = field(default_factory=dict[str, Any])
    later: BackgroundTask | None = None
    """Runs after the response was sent."""

    @property
    def store(self) -> AdminStore:
        return self.context.store

    @property
    def user(self) -> User:
        return self.identity.user

    @property
    def query(self) -> Mapping[str, str]:
        """The query parameters, without empty ones."""
        return {name: value for name, value in self.http.query_params.items() if value.strip()}

    @property
    def base(self) -> str:
        """The prefix of every path, if the console is mounted."""
        return str(self.http.scope.get("root_path", "")).rstrip("/")

    @property
    def here(self) -> str:
        """The path without the prefix."""
        return self.http.url.path.removeprefix(self.base) or "/"

    @cached_property
    def now(self) -> datetime:
        return datetime.now(UTC)

    def may(self, role: Role) -> bool:
        return self.user.role >= role and not self.context.read_only

    def link(self, path: str, **query: object) -> str:
        """Return a URL of the console; parameters that are None or '' are omitted."""
        given = {name: str(value) for name, value in query.items() if value not in (None, "")}
        return f"{self.base}{path}" + (f"?{urlencode(given)}" if given else "")

    async def render(self, template: str, **values: object) -> Response:
        """Render a page, with status 400 if `wrong` has the error of an invalid filter.

        In a thread, because masking a hundred errors takes time.
        """
        context, cookies = self.context, self.http.cookies
        notice = open_notice(context.signer, cookies.get(NOTICE))
        common = {
            "request": self,
            "user": self.user,
            "base": self.base,
            "now": self.now,
            "title_of_console": context.title,
            "navigation": NAVIGATION,
            "notice": notice,
            "token": make_token(context.signer, self.identity.holder, life=context.session),
            "may_act": self.may(Role.OPERATOR),
            "rules": self.may(Role.ADMIN),
            "wrong": "",
        } | values
        html = await asyncio.to_thread(context.templates.get_template(template).render, common)
        answer = HTMLResponse(html, status_code=400 if common["wrong"] else 200)
        if notice:
            answer.delete_cookie(NOTICE, path=f"{self.base}/")
        return answer

    def redirect(self, path: str, message: str, **query: object) -> Response:
        """Redirect to a page that shows the message."""
        answer = RedirectResponse(self.link(path, **query), status_code=303)
        answer.set_cookie(
            NOTICE,
            sign_notice(self.context.signer, message),
            max_age=60,
            path=f"{self.base}/",
            httponly=True,
            samesite="strict",
            secure=is_https(self.http),
        )
        return answer


Page = Callable[[ConsoleRequest], Awaitable[Response]]


def page(path: str, show: Page, *, timeout: float = TIMEOUT) -> Route:
    """Return the route of a page for logged-in users; timeout: in seconds."""

    async def answer(request: Request) -> Response:
        return await _handle_errors(request, lambda: _run_page(request, show, within_seconds=timeout))

    return Route(path, answer, methods=["GET"])


def action(path: str, act: Page, *, needs: Role = Role.OPERATOR) -> Route:
    """Return the route of a form that changes something: it needs a role and a token."""

    async def answer(request: Request) -> Response:
        return await _handle_errors(request, lambda: _run_action(request, act, needs, read_form, token_needed=True))

    return Route(path, answer, methods=["POST"])


def api_action(path: str, act: Page, *, needs: Role) -> Route:
    """Return the route of a JSON request that changes something: it needs a role, and a token or a password."""

    async def answer(request: Request) -> Response:
        return await _handle_errors(request, lambda: _run_action(request, act, needs, read_object, token_needed=False))

    return Route(path, answer, methods=["POST"])


def public_route(path: str, answer: Callable[[Request], Awaitable[Response]], *, method: str) -> Route:
    """Return a route for users who are not logged in."""

    async def answered(request: Request) -> Response:
        return await _handle_errors(request, lambda: answer(request))

    return Route(path, answered, methods=[method])


async def _run_page(request: Request, show: Page, *, within_seconds: float) -> Response:
    context = context_of(request)
    identity = await _identity(context, request)
    if identity is None:
        return login_required(request)
    return await within(within_seconds, show(ConsoleRequest(context=context, http=request, identity=identity)))


async def _run_action(request: Request, act: Page, needs: Role, read: Read, *, token_needed: bool) -> Response:
    """token_needed: also if the request has a password."""
    context = context_of(request)
    identity = await _identity(context, request)
    if identity is None:
        return login_required(request)
    form = await read(request)
    token = request.headers.get("x-csrf-token") or str(form.get(TOKEN, ""))
    if (token_needed or not identity.by_header) and not is_valid_token(context.signer, token, identity.holder):
        raise RequestError(
            403, "The form has expired, or belongs to another login. Go back, reload the page and send it again."
        )
    check_role(identity.user, needs)
    try:
        return await act(ConsoleRequest(context=context, http=request, identity=identity, form=form))
    finally:
        context.forget()


async def _identity(context: ConsoleContext, request: Request) -> AuthenticatedUser | None:
    identity = await context.login.authenticate(request, context.signer)
    ended = identity is not None and identity.by_session and await context.logouts.contains(identity.holder)
    return None if ended else identity


def check_role(user: User, needs: Role) -> None:
    """Raises RequestError."""
    if user.role < needs:
        raise RequestError(403, f"This action needs the role {needs.word}; {user.name} has the role {user.role.word}.")


async def _handle_errors(request: Request, work: Callable[[], Awaitable[Response]]) -> Response:
    """Turn errors of Pillarbox into error pages, or JSON for the API. Other exceptions are bugs and propagate."""
    try:
        check_texts(request.query_params)
        return await work()
    except RequestError as error:
        return error_response(request, error.status, error.message)
    except TooManyAttemptsError:
        answer = error_response(request, 429, "Too many wrong passwords. Wait a minute, then log in again.")
        answer.headers["retry-after"] = "60"
        return answer
    except UsersUnavailableError:
        return error_response(
            request,
            500,
            "The users file cannot be read, so that no user can log in. The log of the console has the error.",
        )
    except (ConfigurationError, RecordError) as error:
        return error_response(request, 400, str(error))
    except PillarboxError as error:
        return store_error_response(request, error)


def is_https(request: Request) -> bool:
    """Whether the browser uses TLS, to the console or to a proxy in front of it.

    The header is not verified: it only makes a cookie stricter.
    """
    return request.url.scheme == "https" or request.headers.get("x-forwarded-proto", "") == "https"


async def read_form(request: Request) -> Mapping[str, Any]:
    """Read the fields of a form. Raises RequestError, ConfigurationError."""
    body = await _body(request, kind="application/x-www-form-urlencoded", wanted="Post a form.")
    return _posted(lambda: dict(parse_qsl(body.decode(), keep_blank_values=True, strict_parsing=bool(body))))


async def read_object(request: Request) -> Mapping[str, Any]:
    """Read the members of a JSON object; every content type that a form can send is rejected.

    Raises RequestError, ConfigurationError.
    """
    wanted = "Post a JSON object, with Content-Type: application/json."
    body = await _body(request, kind="application/json", wanted=wanted)
    return _posted(lambda: json.loads(body or b"{}"))


Read = Callable[[Request], Awaitable[Mapping[str, Any]]]


async def _body(request: Request, *, kind: str, wanted: str) -> bytes:
    given = request.headers.getlist("content-type")
    if [one.partition(";")[0].strip().lower() for one in given] != [kind]:
        raise RequestError(415, wanted)
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_TIMEOUT):
            async for piece in request.stream():
                body += piece
                if len(body) > BODY:
                    raise RequestError(413, f"The body is larger than {BODY // 1024**2} MiB.")
    except ClientDisconnect:
        # The client is gone, but an exception would be logged with its traceback like a bug.
        raise RequestError(400, "The body is incomplete.") from None
    except TimeoutError:
        raise RequestError(408, f"The body did not arrive within {BODY_TIMEOUT:g} s.") from None
    return bytes(body)


def _posted(parse: Callable[[], Any]) -> Mapping[str, Any]:
    try:
        posted = parse()
        if not isinstance(posted, dict):
            raise ValueError
        fields = cast("dict[str, Any]", posted)
        check_texts(fields)
    except (ValueError, RecursionError):
        raise RequestError(400, "The body cannot be decoded.") from None
    return fields
