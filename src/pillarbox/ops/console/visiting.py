"""A visit: one person, one request, one answer. Every page and every action is a function of a visit.

What must stay true: nobody reaches a page without a login, nobody an action without its role and a token of one of our
own pages. Both are checked here, where routes are made, so that no page can forget them.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.background import BackgroundTask
from starlette.requests import Request
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
    """`form` holds what was posted: the fields of a form, or the members of a JSON object."""

    desk: Desk
    request: Request
    known: Known
    form: Mapping[str, Any] = field(default_factory=dict)
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

    def render(self, template: str, **context: object) -> Response:
        """A page; with status 400 where it says what is `wrong` with what was asked."""
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
        drawn = desk.templates.get_template(template).render(common)
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
    """What changes something, and needs a role and a token for it."""

    async def answer(request: Request) -> Response:
        return await _answered(request, lambda: _acted(request, act, needs))

    return Route(path, answer, methods=["POST"])


def entrance(path: str, answer: Callable[[Request], Awaitable[Response]], *, method: str) -> Route:
    """What must be open to those who are not logged in yet."""

    async def answered(request: Request) -> Response:
        return await _answered(request, lambda: answer(request))

    return Route(path, answered, methods=[method])


async def _shown(request: Request, show: Page, patience: float) -> Response:
    desk = desk_of(request)
    known = await desk.login.who(request, desk.signer)
    if known is None:
        return unknown(request)
    return await within(patience, show(Visit(desk=desk, request=request, known=known)))


async def _acted(request: Request, act: Page, needs: Role) -> Response:
    desk = desk_of(request)
    known = await desk.login.who(request, desk.signer)
    if known is None:
        return unknown(request)
    form = await read_form(request)
    token = request.headers.get("x-csrf-token") or str(form.get(TOKEN, ""))
    if not known.by_header and not token_fits(desk.signer, token, known.holder):
        raise Refused(403, "The form was too old, or of another login. Go back, reload the page and try again.")
    check_role(known.person, needs)
    try:
        return await act(Visit(desk=desk, request=request, known=known, form=form))
    finally:
        desk.lookout.forget()


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
        return refusal(request, 429, "Too many wrong passwords. Wait a minute and try again.")
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
    """The fields of a form or of a JSON object. Raises Refused, ConfigurationError."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > BODY:
            raise Refused(413, "That is more than a form may hold.")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        if kind == "application/json":
            posted = json.loads(body or b"{}")
        elif kind == "application/x-www-form-urlencoded":
            posted = dict(parse_qsl(body.decode(), keep_blank_values=True, strict_parsing=bool(body)))
        else:
            raise Refused(415, "Post a form or a JSON object.")
        if not isinstance(posted, dict):
            raise ValueError
        check_texts(posted)
    except (ValueError, RecursionError):
        raise Refused(400, "What was posted cannot be read.") from None
    return posted
