"""Rules for the statements of recording, so that they can be rendered for any driver."""

import re

import pytest

from pillarbox.core.rows import EventRow
from pillarbox.statements import Names, StatementSet, load_statements

POSTGRES = StatementSet(Names(), load_statements("pillarbox.dialects", "record_postgres"))
SQLITE = StatementSet(Names(), load_statements("pillarbox.dialects", "record_sqlite"))
STATEMENTS = [
    *(pytest.param(POSTGRES, found.name, id=f"postgres {found.name}") for found in POSTGRES.listed()),
    *(pytest.param(SQLITE, found.name, id=f"sqlite {found.name}") for found in SQLITE.listed()),
]


@pytest.mark.parametrize(("statements", "name"), STATEMENTS)
def test_placeholders_are_used_once_and_in_order(statements: StatementSet, name: str) -> None:
    numbers = [int(number) for number in re.findall(r"\$(\d+)", statements.get(name))]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("name", ["append", "append_one"])
def test_the_statement_fills_the_columns_of_a_row_in_order(name: str) -> None:
    sql = POSTGRES.get(name)
    found = re.search(r"\(([^)]*)\)", sql)
    assert found is not None
    assert tuple(found[1].replace("\n", " ").replace(" ", "").split(",")) == EventRow._fields
    assert len(re.findall(r"\$\d+", sql)) == len(EventRow._fields)


def test_sqlite_would_not_begin_for_anything_but_an_insert() -> None:
    assert SQLITE.get("append").startswith("INSERT")
