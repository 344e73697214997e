"""For any observation the listener does not raise, writes one line, and omits the payload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_type_hints

from hypothesis import given
from hypothesis import strategies as st

from pillarbox.core.message import Message
from pillarbox.core.observations import Observation
from pillarbox.core.transport import Address
from tests.unit.relay.messages import message
from tests.unit.telemetry.examples import KINDS, lines

CANARY = "canary-in-the-coal-mine"

TEXT = st.text(st.characters())  # lone surrogates and all controls included
MESSAGES = st.builds(
    message,
    event_id=TEXT,
    event_type=TEXT,
    destination=TEXT,
    aggregate_type=st.none() | TEXT,
    aggregate_id=st.none() | TEXT,
    key=st.none() | TEXT,
    payload=st.just(CANARY.encode()),
    headers_json=st.just(f'{{"authorization": "{CANARY}"}}'),
    attempts=st.integers(),
    deferrals=st.integers(),
)
BY_TYPE: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXT,
    int: st.integers(),
    float: st.floats(),
    bool: st.booleans(),
    str | None: st.none() | TEXT,
    float | None: st.none() | st.floats(),
    frozenset[str]: st.frozensets(TEXT),
    Message: MESSAGES,
    Address | None: st.none() | st.builds(Address, transport=TEXT),
    tuple[int, ...]: st.lists(st.integers()).map(tuple),
    Mapping[str, str]: st.dictionaries(TEXT, TEXT),
    Mapping[str, float]: st.dictionaries(TEXT, st.floats()),
    tuple[Message, ...]: st.lists(MESSAGES, max_size=3).map(tuple),
}


def observations(kind: type[Observation]) -> st.SearchStrategy[Observation]:
    return st.builds(kind, **{name: BY_TYPE[hint] for name, hint in get_type_hints(kind).items()})


@given(st.sampled_from(KINDS).flatmap(observations))
def test_no_input_makes_the_listener_raise_or_split_a_line(observation: Observation) -> None:
    for record in lines(observation):
        text = record.getMessage()
        assert text.isprintable()
        assert text.encode()
        for name, value in vars(record).items():
            assert CANARY not in str(value), name
        assert CANARY not in text
