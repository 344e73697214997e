"""A visit: one person, one request, one answer. Every page and every action is a function of a visit.

What must stay true: nobody reaches a page without a login, nobody an action without its role and without proof that no
page of another site made the request. Both are checked here, where routes are made, so that no page can forget them.

The proof is a token of one of our own pages. A script that sends its password with each request (HTTP Basic) has none
and needs none for the API, which reads JSON only: other sites can make a browser send a form with a password that it
has cached, but never a body of type `application/json`.
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

from pillarbox.core.errors import ConfigurationError, PillarboxError, RecordError
from pillarbox.ops.console.access import Person, Role
from pillarbox.ops.console.desk import Desk
from pillarbox.ops.console.fields import TOKEN, check_texts
from pillarbox.ops.console.logins import Known, NobodyKnown, TooManyTries
from pillarbox.ops.console.patience import PATIENCE, within
from pillarbox.ops.console.refusing import desk_of, refusal, unanswered, unknown
from pillarbox.ops.console.sessions import NOTICE, make_token, open_notice, sign_notice, token_fits

BODY = 2 * 1024 * 1024
"""Bytes of a form or a request to the API, at most."""

BODY_PATIENCE = 30.0
"""Seconds in which it has to come."""

NAVIGATION = (
    ("/", "Overview", "o"),
    ("/events", "Events", "e"),
    ("/dead", "Dead letters", "d"),
    ("/destinations", "Destinations", "t"),
    ("/keys", "Keys", "k"),
    ("/relays", "Relays", "r"),
    ("/inbox", "Inbox", "i"),
    ("/store", "Store", "s"),
    ("/audit", "Audit", "a"),
)


class Refused(Exception):
    """A page that cannot be given, and why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


@dataclass(kw_only=True)
class Visit:
    """`form` holds what was posted: the fields of a page's form, or the members of the API's JSON object."""

    desk: Desk
    request: Request
    known: Known
    form: Mapping[str, Any] = field(default_factory=dict[str, Any])
    later: BackgroundTask | None = None
    """What is still to be done once the answer is given."""

    @property
    def person(self) -> Person:
        return self.known.person

    @property
    def query(self) -> Mapping[str, str]:
        """What the URL asks for, without empty fields."""
        return {name: value for name, value in self.request.query_params.items() if value.strip()}

    @property
    def base(self) -> str:
        """What every path of ours begins with."""
        return str(self.request.scope.get("root_path", "")).rstrip("/")

    @property
    def here(self) -> str:
        """The path without what it begins with."""
        return self.request.url.path.removeprefix(self.base) or "/"

    @cached_property
    def now(self) -> datetime:
        return datetime.now(UTC)

    def may(self, role: Role) -> bool:
        return self.person.role >= role and not self.desk.read_only

    def link(self, path: str, **query: object) -> str:
        """A path of ours; what is None or '' is left out of the query."""
        told = {name: str(value) for name, value in query.items() if value not in (None, "")}
        return f"{self.base}{path}" + (f"?{urlencode(told)}" if told else "")

    async def render(self, template: str, **context: object) -> Response:
        """A page; with status 400 where it says what is `wrong` with what was asked. Drawn on a thread: rules hide what
        a hundred errors say."""
        desk, cookies = self.desk, self.request.cookies
        notice = open_notice(desk.signer, cookies.get(NOTICE))
        common = {
            "visit": self,
            "person": self.person,
            "base": self.base,
            "now": self.now,
            "title_of_console": desk.title,
            "navigation": NAVIGATION,
            "notice": notice,
            "token": make_token(desk.signer, self.known.holder, life=desk.session),
            "acts": self.may(Role.OPERATOR),
            "rules": self.may(Role.ADMIN),
            "wrong": "",
        } | context
        drawn = await asyncio.to_thread(desk.templates.get_template(template).render, common)
        answer = HTMLResponse(drawn, status_code=400 if common["wrong"] else 200)
        if notice:
            answer.delete_cookie(NOTICE, path=f"{self.base}/")
        return answer

    def go(self, path: str, said: str, **query: object) -> Response:
        """To another page, which tells what was done."""
        answer = RedirectResponse(self.link(path, **query), status_code=303)
        answer.set_cookie(
            NOTICE,
            sign_notice(self.desk.signer, said),
            max_age=60,
            path=f"{self.base}/",
            httponly=True,
            samesite="strict",
            secure=is_https(self.request),
        )
        return answer


Page = Callable[[Visit], Awaitable[Response]]


def page(path: str, show: Page, *, patience: float = PATIENCE) -> Route:
    """What anybody may look at who is logged in. patience: seconds that it may take."""

    async def answer(request: Request) -> Response:
        return await _answered(request, lambda: _shown(request, show, patience))

    return Route(path, answer, methods=["GET"])


def action(path: str, act: Page, *, needs: Role = Role.OPERATOR) -> Route:
    """A form of a page that changes something: needs a role and a token."""

    async def answer(request: Request) -> Response:
        return await _answered(request, lambda: _acted(request, act, needs, read_form, token_needed=True))

    return Route(path, answer, methods=["POST"])


def api_action(path: str, act: Page, *, needs: Role) -> Route:
    """A JSON request that changes something: needs a role, and a token unless the request carries a password."""

    async def answer(request: Request) -> Response:
        return await _answered(request, lambda: _acted(request, act, needs, read_object, token_needed=False))

    return Route(path, answer, methods=["POST"])


def entrance(path: str, answer: Callable[[Request], Awaitable[Response]], *, method: str) -> Route:
    """What must be open to those who are not logged in yet."""

    async def answered(request: Request) -> Response:
        return await _answered(request, lambda: answer(request))

    return Route(path, answered, methods=[method])


async def _shown(request: Request, show: Page, patience: float) -> Response:
    desk = desk_of(request)
    known = await _known(desk, request)
    if known is None:
        return unknown(request)
    return await within(patience, show(Visit(desk=desk, request=request, known=known)))


async def _acted(request: Request, act: Page, needs: Role, read: Read, *, token_needed: bool) -> Response:
    """token_needed: by those, too, who send their password with the request."""
    desk = desk_of(request)
    known = await _known(desk, request)
    if known is None:
        return unknown(request)
    form = await read(request)
    token = request.headers.get("x-csrf-token") or str(form.get(TOKEN, ""))
    if (token_needed or not known.by_header) and not token_fits(desk.signer, token, known.holder):
        raise Refused(403, "The form was too old, or of another login. Go back, reload the page and try again.")
    check_role(known.person, needs)
    try:
        return await act(Visit(desk=desk, request=request, known=known, form=form))
    finally:
        desk.lookout.forget()


async def _known(desk: Desk, request: Request) -> Known | None:
    known = await desk.login.who(request, desk.signer)
    ended = known is not None and known.by_session and await desk.logouts.contains(known.holder)
    return None if ended else known


def check_role(person: Person, needs: Role) -> None:
    """Raises Refused."""
    if person.role < needs:
        raise Refused(403, f"This needs the role {needs.word}, and {person.name} is {person.role.word}.")


async def _answered(request: Request, work: Callable[[], Awaitable[Response]]) -> Response:
    """Our errors become pages, or objects for the API; everything else is a bug and stays one."""
    try:
        check_texts(request.query_params)
        return await work()
    except Refused as refused:
        return refusal(request, refused.status, refused.why)
    except TooManyTries:
        answer = refusal(request, 429, "Too many wrong passwords. Wait a minute and try again.")
        answer.headers["retry-after"] = "60"
        return answer
    except NobodyKnown:
        return refusal(request, 500, "Nobody can log in now: the log of the console says why.")
    except (ConfigurationError, RecordError) as error:
        return refusal(request, 400, str(error))
    except PillarboxError as error:
        return unanswered(request, error)


def is_https(request: Request) -> bool:
    """Whether the browser speaks TLS, with us or with a proxy in front of us.

    Anybody may claim that: it only makes a cookie stricter.
    """
    return request.url.scheme == "https" or request.headers.get("x-forwarded-proto", "") == "https"


async def read_form(request: Request) -> Mapping[str, Any]:
    """The fields of a form. Raises Refused, ConfigurationError."""
    body = await _body(request, kind="application/x-www-form-urlencoded", wanted="Post a form.")
    return _posted(lambda: dict(parse_qsl(body.decode(), keep_blank_values=True, strict_parsing=bool(body))))


async def read_object(request: Request) -> Mapping[str, Any]:
    """The members of a JSON object, and of nothing that a form could send. Raises Refused, ConfigurationError."""
    wanted = "Post a JSON object, with Content-Type: application/json."
    body = await _body(request, kind="application/json", wanted=wanted)
    return _posted(lambda: json.loads(body or b"{}"))


Read = Callable[[Request], Awaitable[Mapping[str, Any]]]


async def _body(request: Request, *, kind: str, wanted: str) -> bytes:
    given = request.headers.getlist("content-type")
    if [one.partition(";")[0].strip().lower() for one in given] != [kind]:
        raise Refused(415, wanted)
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_PATIENCE):
            async for piece in request.stream():
                body += piece
                if len(body) > BODY:
                    raise Refused(413, "That is more than a form may hold.")
    except ClientDisconnect:
        # Nobody hears this; but it is no bug of ours, which a log would show with its traceback.
        raise Refused(400, "The body ended before it was whole.") from None
    except TimeoutError:
        raise Refused(408, f"The body did not come within {BODY_PATIENCE:g} s.") from None
    return bytes(body)


def _posted(parse: Callable[[], Any]) -> Mapping[str, Any]:
    try:
        posted = parse()
        if not isinstance(posted, dict):
            raise ValueError
        fields = cast("dict[str, Any]", posted)
        check_texts(fields)
    except (ValueError, RecursionError):
        raise Refused(400, "What was posted cannot be read.") from None
    return fields
