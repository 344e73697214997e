"""The login page, for logins by name and password."""

from __future__ import annotations

import logging

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from pillarbox.ops.console.errors import context_of
from pillarbox.ops.console.logins import UserLogin
from pillarbox.ops.console.request import ConsoleRequest, is_https, read_form
from pillarbox.ops.console.sessions import SESSION, sign_session

_log = logging.getLogger("pillarbox.console")


async def show_login(request: Request) -> Response:
    return _drawn(request, wanted=request.query_params.get("next", "/"))


async def login(request: Request) -> Response:
    """Check the password, start a session and redirect to the requested page."""
    context, form = context_of(request), await read_form(request)
    name, password, wanted = (str(form.get(field, "")) for field in ("name", "password", "next"))
    if not isinstance(context.login, UserLogin):
        return RedirectResponse(f"{_base(request)}/", status_code=303)
    address = context.login.address(request)
    user = await context.login.check(name, password, address=address)
    if user is None:
        _log.warning("login of %r from %s failed", name[:64], address)
        return _drawn(request, wanted=wanted, name=name, wrong=True)
    _log.info("%s logged in from %s", user.name, address)
    answer = RedirectResponse(f"{_base(request)}{_within(wanted)}", status_code=303)
    answer.set_cookie(
        SESSION,
        sign_session(context.signer, context.login.begin(user), life=context.session),
        max_age=int(context.session),
        path=f"{_base(request)}/",
        httponly=True,
        samesite="strict",
        secure=is_https(request),
    )
    return answer


async def logout(request: ConsoleRequest) -> Response:
    """End the session: a kept copy of its cookie becomes invalid."""
    context = request.context
    if request.identity.by_session:
        await context.logouts.add(request.identity.holder, by=request.user.name)
    answer = RedirectResponse(request.link("/login"), status_code=303)
    answer.delete_cookie(SESSION, path=f"{request.base}/", httponly=True, samesite="strict")
    return answer


def _drawn(request: Request, *, wanted: str, name: str = "", wrong: bool = False) -> Response:
    context = context_of(request)
    drawn = context.templates.get_template("login.html").render(
        base=_base(request), wanted=wanted, name=name, wrong=wrong, title_of_console=context.title
    )
    return HTMLResponse(drawn, status_code=401 if wrong else 200)


def _within(wanted: str) -> str:
    """A path of ours and nothing else: neither //elsewhere nor /\\elsewhere."""
    ours = wanted.startswith("/") and not wanted.startswith(("//", "/\\")) and "\\" not in wanted
    return wanted if ours and wanted.isprintable() else "/"


def _base(request: Request) -> str:
    return str(request.scope.get("root_path", "")).rstrip("/")
