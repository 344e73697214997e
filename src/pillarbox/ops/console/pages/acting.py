"""Operator requests for pending events, and pausing every destination.

They use the functions of the CLI commands, under the name of the logged-in user.
"""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from pillarbox.admin.requests import Action
from pillarbox.core.clock import seconds
from pillarbox.core.errors import ConfigurationError
from pillarbox.core.message import Status
from pillarbox.ops import decisions, operator_requests
from pillarbox.ops.bulk_actions import Scope
from pillarbox.ops.console import words
from pillarbox.ops.console.counting import check_count, counted
from pillarbox.ops.console.fields import TOKEN, check_names
from pillarbox.ops.console.filters import EVENT_FIELDS, event_filter, given
from pillarbox.ops.console.pages.asked import answer
from pillarbox.ops.console.pages.dead import chosen, decision_of, told
from pillarbox.ops.console.visiting import Refused, Visit
from pillarbox.ops.operator_requests import Pending
from pillarbox.ops.overrides import DestinationOverrides


async def act_on_event(visit: Visit) -> Response:
    said = await do_to_event(visit)
    event_id = str(visit.form.get("id", ""))
    story = await visit.desk.store.admin.events.show(event_id)
    return visit.go("/event", said, id=event_id) if story.events else visit.go("/dead", said)


async def do_to_event(visit: Visit) -> str:
    """Act on one event for one destination. Returns the message to show."""
    event_id, destination, do = (str(visit.form.get(name, "")) for name in ("id", "destination", "do"))
    store, by = visit.desk.store, visit.person.name
    story = await store.admin.events.show(event_id)
    found = [detail for detail in story.events if detail.destination == destination]
    found.sort(key=lambda detail: detail.status is Status.PUBLISHED)
    if not found:
        raise Refused(404, f"Event {event_id!r} has no delivery to {destination!r}.")
    if found[0].status is Status.PUBLISHED:
        raise Refused(409, f"Event {event_id!r} was already delivered to {destination!r}: replay it to send it again.")
    if found[0].dead_letter_id is None:
        delay = delay_of(visit.form) if do == "reschedule" else 0
        await store.admin.requests.add(action_of(do), [(event_id, destination)], delay=delay, by=by)
        return await answer(visit, "Requested: the relay that owns its lane applies it within two seconds.")
    decision = decision_of(do)
    choice = await chosen(visit, {"destination": destination}, [event_id])
    return await told(visit, decision, choice, *await decisions.carry_out(store, decision, choice, by=by))


async def confirm_waiting(visit: Visit) -> Response:
    """Ask for confirmation, with the exact number of pending events."""
    check_names(visit.query, (*EVENT_FIELDS, "do"))
    asked, do = given(visit.query, EVENT_FIELDS), action_of(visit.query.get("do", ""))
    waiting = await waiting_for(visit, asked)
    return await visit.render("confirm_waiting.html", do=do, asked=asked, count=len(waiting))


async def decide_waiting(visit: Visit) -> Response:
    """Act on every matching pending event, if the number is still the confirmed one."""
    check_names(visit.form, (*EVENT_FIELDS, "do", "delay", "count", TOKEN))
    posted = {name: str(value) for name, value in visit.form.items() if str(value).strip()}
    asked, do = given(posted, EVENT_FIELDS), action_of(posted.get("do", ""))
    delay = delay_of(posted) if do == "reschedule" else 0
    waiting = await waiting_for(visit, asked)
    check_count(len(waiting), posted.get("count"))
    scope = Scope(wanted=event_filter(asked))
    done = await operator_requests.request_all(visit.desk.store, do, waiting, scope, delay=delay, by=visit.person.name)
    said = f"{words.plural(done, 'event')}: requested from the relays that own their lanes."
    return visit.go("/events", await answer(visit, said), **asked)


async def waiting_for(visit: Visit, asked: Mapping[str, str]) -> Pending:
    """Raises Refused if counting takes too long, ConfigurationError for a wrong filter."""
    return await counted(operator_requests.select(visit.desk.store, event_filter(asked)))


async def pause_everything(visit: Visit) -> Response:
    return visit.go("/", await pause_or_resume(visit))


async def pause_or_resume(visit: Visit) -> str:
    """Pause or resume every destination. Returns the message to show."""
    overrides = DestinationOverrides(store=visit.desk.store, by=visit.person.name, configured=visit.desk.destinations)
    match visit.form.get("do"):
        case "pause":
            await overrides.pause([])
            return "Every destination is paused: relays stop sending."
        case "resume":
            await overrides.resume([])
            return "Every destination is resumed."
        case _:
            raise ConfigurationError("do must be pause or resume")


def action_of(text: str) -> Action:
    """Raises ConfigurationError."""
    match text:
        case "retry" | "discard" | "reschedule" | "dead_letter":
            return text
        case _:
            raise ConfigurationError(f"unknown action {text!r}: use retry, discard, reschedule or dead_letter")


def delay_of(posted: Mapping[str, object]) -> float:
    """Raises ConfigurationError."""
    return seconds(str(posted.get("delay", "")), field="delay")
