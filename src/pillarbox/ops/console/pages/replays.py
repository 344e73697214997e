"""Replay: what was delivered goes out once more, as new events; counted first, then copied while others look on."""

from __future__ import annotations

import asyncio
import logging
import shlex
from collections.abc import Mapping

from starlette.background import BackgroundTask
from starlette.responses import Response

from pillarbox.core.browsing import EventFilter
from pillarbox.core.errors import PillarboxError
from pillarbox.core.overview import COUNTED
from pillarbox.core.replay import Progress, Replay
from pillarbox.core.store import Store
from pillarbox.ops import replaying
from pillarbox.ops.console.filters import given, moment, whole
from pillarbox.ops.console.pages.dead import PATIENCE
from pillarbox.ops.console.visiting import Refused, Visit
from pillarbox.relay.routing import per_second

FIELDS = ("id", "type", "key", "destination", "since", "until", "to", "rate", "most")
_LONGEST = 1_000_000_000

_log = logging.getLogger("pillarbox.console")


async def confirm(visit: Visit) -> Response:
    """What it would be; nothing is counted before somebody has said what he wants."""
    asked = given(visit.query, FIELDS)
    found = await _counted(visit, plan_of(asked)) if asked else None
    return visit.render("replay.html", asked=asked, found=found, counted=COUNTED, command=_command(asked))


async def begin(visit: Visit) -> Response:
    """The replay is in the audit before the answer; the copies are made after it."""
    progress, answer = await begun(visit)
    event_id = str(visit.form.get("id", ""))
    path, query = ("/event", {"id": event_id}) if event_id else ("/audit", {"what": "replay"})
    said = f"Replay {progress.number} began; the audit tells how far it is."
    redirect = visit.go(path, said, **query)
    redirect.background = answer
    return redirect


async def begun(visit: Visit) -> tuple[Progress, BackgroundTask]:
    """A replay, and what is left to be done of it. Raises Refused, ConfigurationError."""
    asked = {name: str(visit.form[name]) for name in FIELDS if str(visit.form.get(name) or "").strip()}
    if not asked:
        raise Refused(400, "Say what is to be replayed: an event, a type, a key, a destination or a time.")
    plan, store = plan_of(asked), visit.desk.store
    if not await _counted(visit, plan):
        raise Refused(404, "The history has nothing that fits.")
    progress = await store.replays.begin(plan, by=visit.person.name)
    return progress, BackgroundTask(_go_on, store, progress)


def plan_of(asked: Mapping[str, str]) -> Replay:
    """Raises ConfigurationError."""
    return Replay(
        wanted=EventFilter(
            event_type=asked.get("type"),
            key=asked.get("key"),
            destination=asked.get("destination"),
            since=moment(asked.get("since")),
        ),
        until=moment(asked.get("until")),
        event_ids=(asked["id"],) if "id" in asked else (),
        to=asked.get("to"),
        rate=per_second(asked["rate"]) if "rate" in asked else None,
        most=whole(asked["most"], "most", default=1, most=_LONGEST) if "most" in asked else None,
    )


async def _counted(visit: Visit, plan: Replay) -> int:
    try:
        async with asyncio.timeout(PATIENCE):
            return await replaying.count(visit.desk.store, plan)
    except TimeoutError:
        raise Refused(
            413, f"There is too much to be counted in {PATIENCE:g} s: narrow the filter, or use the command line."
        ) from None


async def _go_on(store: Store, progress: Progress) -> None:
    try:
        await replaying.go_on(store, progress)
    except PillarboxError as error:
        # Nobody waits for it any more: whoever reads the log finishes it.
        _log.error("replay %s stopped: %s; `pillarbox replay --resume %s`", progress.number, error, progress.number)


def _command(asked: Mapping[str, str]) -> str:
    named = {"most": "limit"}
    ids = [shlex.quote(asked["id"])] if "id" in asked else []
    options = [f"--{named.get(name, name)} {shlex.quote(value)}" for name, value in asked.items() if name != "id"]
    return " ".join(["pillarbox", "replay", *ids, *options])
