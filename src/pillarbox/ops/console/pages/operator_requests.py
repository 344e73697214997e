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
from pillarbox.ops import dead_letter_actions, operator_requests
from pillarbox.ops.bulk_actions import Scope
from pillarbox.ops.console import formatting
from pillarbox.ops.console.bulk_counts import check_confirmed, with_count_timeout
from pillarbox.ops.console.fields import TOKEN, check_names
from pillarbox.ops.console.filters import EVENT_FIELDS, event_filter, given
from pillarbox.ops.console.pages.dead_letters import dead_letter_action_of, describe_result, selected
from pillarbox.ops.console.pages.messages import answer
from pillarbox.ops.console.request import ConsoleRequest, RequestError
from pillarbox.ops.destination_overrides import DestinationOverrides
from pillarbox.ops.operator_requests import Pending


async def act_on_event(request: ConsoleRequest) -> Response:
    said = await act_on_one(request)
    event_id = str(request.form.get("id", ""))
    story = await request.store.admin.events.show(event_id)
    return request.redirect("/event", said, id=event_id) if story.events else request.redirect("/dead", said)


async def act_on_one(request: ConsoleRequest) -> str:
    """Act on one event for one destination. Returns the message to show."""
    event_id, destination, action = (str(request.form.get(name, "")) for name in ("id", "destination", "action"))
    store, by = request.store, request.user.name
    story = await store.admin.events.show(event_id)
    found = [detail for detail in story.events if detail.destination == destination]
    found.sort(key=lambda detail: detail.status is Status.PUBLISHED)
    if not found:
        raise RequestError(404, f"Event {event_id!r} has no delivery to {destination!r}.")
    if found[0].status is Status.PUBLISHED:
        raise RequestError(409, f"Event {event_id!r} was delivered to {destination!r}: replay it to send it again.")
    if found[0].dead_letter_id is None:
        delay = delay_of(request.form) if action == "reschedule" else 0
        await store.admin.requests.add(action_of(action), [(event_id, destination)], delay=delay, by=by)
        return await answer(request, "Requested: the relay that owns its lane applies it within two seconds.")
    decided = dead_letter_action_of(action)
    selection = await selected(request, {"destination": destination}, [event_id])
    done, requested = await dead_letter_actions.execute(store, decided, selection, by=by)
    return await describe_result(request, decided, selection, done, requested)


async def confirm_pending(request: ConsoleRequest) -> Response:
    """Ask for confirmation, with the exact number of pending events."""
    check_names(request.query, (*EVENT_FIELDS, "action"))
    asked, action = given(request.query, EVENT_FIELDS), action_of(request.query.get("action", ""))
    waiting = await select_pending(request, asked)
    return await request.render(
        "confirm_pending.html", action=action, asked=asked, pending=waiting, digest=await waiting.digest()
    )


async def decide_pending(request: ConsoleRequest) -> Response:
    """Act on every matching pending event, if they are still the confirmed ones."""
    check_names(request.form, (*EVENT_FIELDS, "action", "delay", "count", "selection", TOKEN))
    posted = {name: str(value) for name, value in request.form.items() if str(value).strip()}
    asked, action = given(posted, EVENT_FIELDS), action_of(posted.get("action", ""))
    delay = delay_of(posted) if action == "reschedule" else 0
    waiting = await select_pending(request, asked)
    check_confirmed(len(waiting), await waiting.digest(), posted, required=True)
    scope = Scope(wanted=event_filter(asked))
    done = await operator_requests.request_all(request.store, action, waiting, scope, delay=delay, by=request.user.name)
    said = f"{formatting.plural(done, 'event')}: requested from the relays that own their lanes."
    return request.redirect("/events", await answer(request, said), **asked)


async def select_pending(request: ConsoleRequest, asked: Mapping[str, str]) -> Pending:
    """Raises RequestError if counting takes too long, ConfigurationError for a wrong filter."""
    return await with_count_timeout(operator_requests.select(request.store, event_filter(asked)))


async def pause_all(request: ConsoleRequest) -> Response:
    return request.redirect("/", await set_pause(request))


async def set_pause(request: ConsoleRequest) -> str:
    """Pause or resume every destination. Returns the message to show."""
    overrides = DestinationOverrides(store=request.store, by=request.user.name, configured=request.context.destinations)
    match request.form.get("action"):
        case "pause":
            await overrides.pause([])
            return "Every destination is paused: relays stop sending."
        case "resume":
            await overrides.resume([])
            return "Every destination is resumed."
        case _:
            raise ConfigurationError("action must be pause or resume")


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
