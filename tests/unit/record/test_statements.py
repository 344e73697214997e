"""What every statement in the folder keeps to, so that it can be rendered for any driver."""

import re
from importlib.resources import files

import pytest

from pillarbox.core.names import Names
from pillarbox.core.row import Row
from pillarbox.core.sqlfiles import statement, text

ROOT = files("pillarbox.record") / "sql"
NAMES = [
    f"{folder}/{file.name.removesuffix('.sql')}"
    for folder in ("postgres", "sqlite")
    for file in sorted((ROOT / folder).iterdir(), key=lambda file: file.name)
]


@pytest.mark.parametrize("name", [*NAMES, "on_conflict"])
def test_it_begins_with_a_sentence_of_purpose(name: str) -> None:
    assert re.match(r"-- [A-Z].*[.?]", text("pillarbox.record", name))


@pytest.mark.parametrize("name", NAMES)
def test_its_placeholders_are_used_once_and_in_order(name: str) -> None:
    numbers = [int(number) for number in re.findall(r"\$(\d+)", text("pillarbox.record", name))]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("postgres/append")])
def test_it_fills_the_columns_of_a_row_in_their_order(name: str) -> None:
    sql = statement("pillarbox.record", name, Names())
    found = re.search(r"\(([^)]*)\)", sql)
    assert found is not None
    assert tuple(found[1].replace("\n", " ").replace(" ", "").split(",")) == Row._fields
    assert len(re.findall(r"\$\d+", sql)) == len(Row._fields)


def test_sqlite_would_not_begin_for_anything_but_an_insert() -> None:
    assert statement("pillarbox.record", "sqlite/append", Names(), on_conflict="").startswith("INSERT")
