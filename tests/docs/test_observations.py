"""The reference of observations names every kind, its fields, its logger and its levels, as they are."""

import re
from dataclasses import fields
from typing import Any, get_args

import pytest

from pillarbox import observations
from pillarbox.observations import ConsumerObservation, Observation
from tests.docs.pages import ROOT
from tests.unit.telemetry.examples import EXAMPLES, KINDS, lines

PAGE = (ROOT / "docs/reference/observations.md").read_text(encoding="utf-8")
ROWS = {
    name: [cell.strip() for cell in cells.split(" | ")]
    for name, cells in re.findall(r"^\| `(\w+)` \| (.+) \|$", PAGE, re.MULTILINE)
}


def test_the_rows_are_the_kinds_in_their_order() -> None:
    assert list(ROWS) == [kind.__name__ for kind in KINDS]


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_names_every_field(kind: type[Any]) -> None:
    _, named, _, _ = ROWS[kind.__name__]
    assert named == ", ".join(f"`{field.name}`" for field in fields(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_names_the_logger_and_the_level(kind: type[Any]) -> None:
    _, _, logger, levels = ROWS[kind.__name__]
    records = lines(*(example for example in EXAMPLES if isinstance(example, kind)))
    assert {f"`{record.name}`" for record in records} == {logger}
    assert {record.levelname for record in records} == set(levels.split(", "))


def test_every_attribute_of_a_record_is_named() -> None:
    usual = set(vars(lines(EXAMPLES[0])[0])) - {"relay", "relay_name"}
    ours = {name for record in lines(*EXAMPLES) for name in vars(record)} - usual
    assert sorted(name for name in ours if f"`{name}`" not in PAGE) == []


def test_every_kind_has_a_public_home() -> None:
    kinds = {kind.__name__ for kind in (*get_args(Observation), *get_args(ConsumerObservation))}
    assert kinds <= set(observations.__all__)
