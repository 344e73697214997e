"""Templates of addresses: checked when they are created, filled in per message."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.adapters import AddressTemplate, ConfigurationError, Message, PermanentError
from pillarbox.transports.address_template import PLACEHOLDERS
from pillarbox.transports.rabbitmq import Binding, Queue
from pillarbox.transports.redis.scripts import ConsumerStreams
from tests.unit.relay.messages import message

SUBJECT = "the subject"
UNUSUAL = ("a\u00a0b", "\U0001f468\u200d\U0001f467")
"""Texts that an event type may have, and `str.isprintable` does not call printable."""


def parsed(text: str) -> AddressTemplate:
    return AddressTemplate.parse(SUBJECT, text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("{event_type}", "order.placed"),
        ("shop.{aggregate_type}.{aggregate_id}", "shop.ORDER.42"),
        ("{key}{key}", "ORDER:42ORDER:42"),
        ("{{{event_type}}}", "{order.placed}"),
        ("größe.{event_type}.end", "größe.order.placed.end"),
    ],
)
def test_placeholders_are_filled_in_per_message(text: str, name: str) -> None:
    template = parsed(text)
    assert template.name_for(message()) == name
    assert template.fixed is None


@pytest.mark.parametrize(
    ("text", "name"),
    [("orders", "orders"), ("", ""), ("{{orders}}", "{orders}"), ("a b", "a b"), *[(one, one) for one in UNUSUAL]],
)
def test_a_text_without_placeholders_is_the_name_of_every_message(text: str, name: str) -> None:
    template = parsed(text)
    assert (template.fixed, template.name_for(message())) == (name, name)


def test_an_empty_text_has_no_parts() -> None:
    assert parsed("").parts == ()
    assert parsed("{key}").parts == (("", "key"),)


@pytest.mark.parametrize("text", UNUSUAL)
def test_what_is_named_after_an_event_type_can_be_consumed_and_bound(text: str) -> None:
    assert ConsumerStreams(work=text, group=text).work == text
    assert Queue(name=text, bindings=[Binding(exchange="shop", routing_key=text)]).name == text


def test_literals_are_what_every_name_contains() -> None:
    assert parsed("shop.{event_type}.{{x}}").literals == "shop..{x}"


@pytest.mark.parametrize("text", ["{payload}", "{}", "{0}", "{key!r}", "{key:>9}", "{key.upper}", "{event_id}"])
def test_an_unknown_placeholder_is_refused_with_the_known_ones(text: str) -> None:
    with pytest.raises(ConfigurationError, match=SUBJECT) as refused:
        parsed(text)
    assert all(f"{{{name}}}" in str(refused.value) for name in PLACEHOLDERS)


@pytest.mark.parametrize("text", ["{", "}", "{key", "a\nb", "\ud800", "\x00{key}", None, 7, b"orders"])
def test_an_invalid_template_is_refused(text: Any) -> None:
    with pytest.raises(ConfigurationError, match=SUBJECT):
        parsed(text)


@pytest.mark.parametrize("name", ["aggregate_type", "aggregate_id", "key"])
def test_a_message_without_the_value_fails_permanently(name: str) -> None:
    template = parsed(f"shop.{{{name}}}")
    with pytest.raises(PermanentError, match=rf"the subject 'shop\.\{{{name}\}}' needs {name}.*evt-001"):
        template.name_for(message(**{name: None}))


@given(st.text(max_size=20), st.sampled_from(PLACEHOLDERS), st.text(max_size=20))
def test_values_are_filled_in_as_they_are(before: str, name: str, value: str) -> None:
    literal = "".join(c for c in before if c.isprintable())
    template = parsed(literal.replace("{", "{{").replace("}", "}}") + f"{{{name}}}")
    filled: Message = message(**{name: value})
    assert template.name_for(filled) == literal + value
