"""The reference of the consumer names every argument, every header, and every observation as it is logged."""

import inspect
import re
from dataclasses import fields
from typing import Any, get_args

import pytest

from pillarbox import Consumer
from pillarbox.inbox import ConsumedEvent
from pillarbox.inbox.observations import ConsumerObservation
from pillarbox.transports.rabbitmq import RabbitMQSource, properties
from tests.docs.pages import ROOT
from tests.unit.telemetry.test_consumer_lines import LINES

PAGE = (ROOT / "docs/reference/consumer.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| `([A-Z]\w+)` \| (.+) \|$", PAGE, re.MULTILINE))
FOR_TESTS = {"clock", "rng"}


@pytest.mark.parametrize("kind", [Consumer, RabbitMQSource])
def test_every_argument_is_named(kind: type[Any]) -> None:
    arguments = set(inspect.signature(kind).parameters) - FOR_TESTS
    assert sorted(name for name in arguments if f"`{name}`" not in PAGE) == []


def test_every_field_of_an_event_is_named() -> None:
    assert [field.name for field in fields(ConsumedEvent) if f"`{field.name}`" not in PAGE] == []


def test_every_header_is_named() -> None:
    found = [value for value in vars(properties).values() if isinstance(value, str) and value.startswith("pillarbox-")]
    assert len(found) == 6
    assert [header for header in found if f"`{header}`" not in PAGE] == []


@pytest.mark.parametrize("kind", get_args(ConsumerObservation))
def test_an_observation_has_its_fields_its_logger_and_its_levels(kind: type[Any]) -> None:
    named, logger, levels = ROWS[kind.__name__].split(" | ")
    assert named == ", ".join(f"`{field.name}`" for field in fields(kind))
    logged = {
        (f"`pillarbox.consumer{where}`", level) for reported, level, where, _ in LINES if isinstance(reported, kind)
    }
    assert logged == {(logger, level) for level in levels.split(", ")}
