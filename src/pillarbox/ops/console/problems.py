"""The problems of the overview as cards: each says what is wrong, links to the page that tells more, and has the action
that an operator would take next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pillarbox.core.text import noun
from pillarbox.ops.console import formatting
from pillarbox.ops.destination_reports import DestinationRates
from pillarbox.ops.health import DestinationView, HealthSnapshot, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class CardAction:
    """What an operator would do next: a form, a page that asks for confirmation, or a command."""

    label: str
    post: str = ""
    """The path to which a form posts `fields`."""
    page: str = ""
    """The path of a page."""
    command: str = ""
    """A command to copy."""
    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    """The fields of the form, or the query of the page."""
    admin: bool = False
    """Whether it needs the role admin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemCard:
    """One problem."""

    level: str
    """bad or warn."""
    text: str
    link: str
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    link_label: str
    action: CardAction


_DOCTOR = CardAction(label="Run doctor", page="/store", fields={"doctor": "1"})


def cards(snapshot: HealthSnapshot, rates: Mapping[str, DestinationRates], *, slo: float) -> Iterator[ProblemCard]:
    """Return one card per problem. slo: seconds that an event may be pending."""
    for problem in snapshot.flow.problems:
        yield _card(problem, stopped=snapshot.flow.state == "stopped")
    yield from (_failing(one, rates[one.name]) for one in snapshot.destinations if _fails(one, rates))
    yield from _alarms(snapshot, slo)


def _card(problem: Problem, *, stopped: bool) -> ProblemCard:
    level, text = "bad" if stopped else "warn", formatting.sentence(problem.sentence)
    match problem.kind:
        case "no_relay":
            action = CardAction(label="Copy the command", command="pillarbox relay")
            return ProblemCard(level=level, text=text, link="/relays", link_label="Relays", action=action)
        case "paused":
            action = CardAction(label="Resume all", post="/everything", fields={"action": "resume"})
            return ProblemCard(level=level, text=text, link="/destinations", link_label="Destinations", action=action)
        case "destination" if problem.destination is not None:
            return _destination(problem.destination, text)
        case "blocked_keys":
            action = CardAction(label="Retry all keys…", page="/keys/decide", fields={"action": "retry"})
            return ProblemCard(level=level, text=text, link="/keys", link_label="Blocked keys", action=action)
        case "late" if problem.event_id is not None:
            query = {"id": problem.event_id}
            return ProblemCard(
                level=level, text=text, link="/event", query=query, link_label="Oldest event", action=_DOCTOR
            )
        case _:
            return ProblemCard(level=level, text=text, link="/relays", link_label="Relays", action=_DOCTOR)


def _destination(one: DestinationView, text: str) -> ProblemCard:
    action = CardAction(
        label=f"Pause {one.name}", post="/destinations/override", fields={"destination": one.name, "action": "pause"}
    )
    if one.paused:
        action = CardAction(
            label=f"Resume {one.name}",
            post="/destinations/override",
            fields={"destination": one.name, "action": "resume"},
        )
    elif one.forced:
        action = CardAction(
            label=f"Let relays decide for {one.name}",
            post="/destinations/override",
            fields={"destination": one.name, "action": "release"},
            admin=True,
        )
    level = "warn" if one.paused else "bad"
    query = {"name": one.name}
    return ProblemCard(level=level, text=text, link="/destination", query=query, link_label=one.name, action=action)


def _fails(one: DestinationView, rates: Mapping[str, DestinationRates]) -> bool:
    return one.is_available and one.name in rates and rates[one.name].fails


def _failing(one: DestinationView, rates: DestinationRates) -> ProblemCard:
    text = f"{one.name} is available, but {rates.failed * 100:.0f} % of the sends of the last five minutes failed."
    return _destination(one, text)


def _alarms(snapshot: HealthSnapshot, slo: float) -> Iterator[ProblemCard]:
    """Yield problems besides those of the flow."""
    oldest, event_id = snapshot.overview.oldest, snapshot.overview.oldest_event
    if oldest is not None and oldest > slo and all(problem.kind != "late" for problem in snapshot.flow.problems):
        yield ProblemCard(
            level="bad",
            text=f"The oldest pending event is {formatting.span(oldest)} old, "
            f"more than the objective of {formatting.span(slo)}.",
            link="/event",
            query={"id": event_id or ""},
            link_label="Oldest event",
            action=_DOCTOR,
        )
    ended = [relay for relay in snapshot.overview.relays if relay.lease <= 0]
    if ended:
        lanes = noun(len(ended), "its lanes", "their lanes")
        rest = "other relays acquire them" if snapshot.running_relays else "no other relay is running to acquire them"
        text = f"{formatting.plural(len(ended), 'relay')} ended without releasing {lanes}; {rest}."
        yield ProblemCard(level="warn", text=text, link="/relays", link_label="Ended relays", action=_DOCTOR)
    crashes = sum(lane.crashes for lane in snapshot.overview.lanes)
    if crashes:
        text = f"{formatting.plural(crashes, 'takeover')} in a row without progress: an event may crash the relays."
        yield ProblemCard(level="bad", text=text, link="/relays", link_label="Relays and lanes", action=_DOCTOR)
