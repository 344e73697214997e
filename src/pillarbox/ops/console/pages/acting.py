"""What people do with events that wait, and with everything at once.

All of it goes through the functions that the commands use, under the name of who is logged in.
"""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from pillarbox.core.duration import seconds
from pillarbox.core.errors import ConfigurationError
from pillarbox.core.people import Action
from pillarbox.ops import asking, decisions, steering
from pillarbox.ops.console import words
from pillarbox.ops.console.filters import EVENT_FIELDS, event_filter, given
from pillarbox.ops.console.pages.dead import chosen, decision_of, told
from pillarbox.ops.console.visiting import Refused, Visit


async def act_on_event(visit: Visit) -> Response:
    said = await do_to_event(visit)
    event_id = str(visit.form.get("id", ""))
    story = await visit.desk.store.browsing.show(event_id)
    return visit.go("/event", said, id=event_id) if story.events else visit.go("/dead", said)


async def do_to_event(visit: Visit) -> str:
    """One event on its way to one destination. Returns what was done."""
    event_id, destination, do = (str(visit.form.get(name, "")) for name in ("id", "destination", "do"))
    store, by = visit.desk.store, visit.person.name
    story = await store.browsing.show(event_id)
    found = [detail for detail in story.events if detail.destination == destination]
    if not found:
        raise Refused(404, f"There is no event {event_id!r} on its way to {destination!r}.")
    if found[0].letter is None:
        delay = delay_of(visit.form) if do == "reschedule" else 0
        await store.people.ask(action_of(do), event_id, destination, delay=delay, by=by)
        return "Asked of the relay that owns its lane: it does so within a second or two."
    decision = decision_of(do)
    choice = await chosen(visit, {"destination": destination}, [event_id])
    return told(decision, choice, *await decisions.carry_out(store, decision, choice, by=by))


async def confirm_waiting(visit: Visit) -> Response:
    """How many waiting events it would be."""
    asked, do = given(visit.query, EVENT_FIELDS), action_of(visit.query.get("do", ""))
    waiting = await asking.choose(visit.desk.store, event_filter(asked))
    return visit.render("confirm_waiting.html", do=do, asked=asked, waiting=waiting)


async def decide_waiting(visit: Visit) -> Response:
    """Every waiting event that fits, if that is still as many as were confirmed."""
    posted = {name: str(value) for name, value in visit.form.items() if str(value).strip()}
    asked, do = given(posted, EVENT_FIELDS), action_of(posted.get("do", ""))
    delay = delay_of(posted) if do == "reschedule" else 0
    waiting = await asking.choose(visit.desk.store, event_filter(asked))
    if str(waiting.count) != posted.get("count"):
        raise Refused(409, f"Meanwhile it would be {waiting.count:,}. Go back, look again, and confirm that number.")
    done = await asking.ask(visit.desk.store, do, waiting, delay=delay, by=visit.person.name)
    return visit.go("/events", f"{words.plural(done, 'event')}: asked of the relays that own their lanes.", **asked)


async def pause_everything(visit: Visit) -> Response:
    return visit.go("/", await pause_or_resume(visit))


async def pause_or_resume(visit: Visit) -> str:
    """Every destination. Returns what was done."""
    match visit.form.get("do"):
        case "pause":
            await steering.pause(visit.desk.store, [], by=visit.person.name)
            return "Everything is paused: relays stop sending."
        case "resume":
            await steering.resume(visit.desk.store, [], by=visit.person.name)
            return "Everything goes on."
        case _:
            raise ConfigurationError("everything can be paused or resumed: send do=pause or do=resume")


def action_of(text: str) -> Action:
    """Raises ConfigurationError."""
    match text:
        case "retry" | "discard" | "reschedule" | "bury":
            return text
        case _:
            raise ConfigurationError(f"{text!r} is nothing that can be asked: retry, discard, reschedule or bury")


def delay_of(posted: Mapping[str, object]) -> float:
    """Raises ConfigurationError."""
    return seconds(str(posted.get("delay", "")), field="delay")
