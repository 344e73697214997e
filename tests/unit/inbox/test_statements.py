"""Rules for the statements of the inbox, so that they can be rendered for any driver."""

import re

import pytest

from pillarbox import dialects
from pillarbox.core.rows import InboxRecord
from pillarbox.core.statistics import ConsumerStatistics
from pillarbox.statements import Names

ENGINES = tuple(dialects.known())
ROWS = {"admit": InboxRecord, "count_results": ConsumerStatistics}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("name", "row"), ROWS.items())
def test_placeholders_are_used_once_and_in_order(
    engine: str, name: str, row: type[InboxRecord | ConsumerStatistics]
) -> None:
    found = re.findall(r"\$\d+", dialects.find(engine).statements(Names()).get(name))
    assert found == [f"${number}" for number in range(1, len(row._fields) + 1)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ROWS)
def test_sqlite_would_not_begin_for_anything_but_an_insert(engine: str, name: str) -> None:
    assert dialects.find(engine).statements(Names()).get(name).startswith("INSERT")
