"""What the statements keep to, so that they can be rendered for any driver."""

import re

import pytest

from pillarbox.core.names import Names
from pillarbox.core.row import Receipt, Tally
from pillarbox.core.sqlfiles import statement, text

STATEMENTS = {"admit": Receipt, "postgres/tally": Tally, "sqlite/tally": Tally}


@pytest.mark.parametrize("name", STATEMENTS)
def test_it_begins_with_a_sentence_of_purpose(name: str) -> None:
    assert re.match(r"-- [A-Z].*\.", text("pillarbox.inbox", name))


@pytest.mark.parametrize(("name", "row"), STATEMENTS.items())
def test_its_placeholders_are_those_of_its_row_used_once_and_in_order(name: str, row: type[Receipt | Tally]) -> None:
    found = re.findall(r"\$\d+", text("pillarbox.inbox", name))
    assert found == [f"${number}" for number in range(1, len(row._fields) + 1)]


@pytest.mark.parametrize("name", STATEMENTS)
def test_sqlite_would_not_begin_for_anything_but_an_insert(name: str) -> None:
    assert statement("pillarbox.inbox", name, Names()).startswith("INSERT")
