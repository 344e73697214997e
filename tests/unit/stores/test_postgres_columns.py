"""The arrays that the writes of PostgreSQL send are those that their statements read, in the same order."""

import re
from typing import Any

import pytest

from pillarbox.statements import Names
from pillarbox.stores.postgres.statements import PostgresStatements
from pillarbox.stores.postgres.writes import DeadLetterRow, RequeueRow


@pytest.mark.parametrize(("name", "row"), [("requeue", RequeueRow), ("dead_letter", DeadLetterRow)])
def test_a_statement_reads_the_fields_of_its_rows_in_order(name: str, row: Any) -> None:
    sql = PostgresStatements(Names(schema="public")).get(name)
    found = re.search(r"unnest\((\$3[^)]*)\)\s+AS a\(([^)]*)\)", sql)
    assert found is not None
    assert tuple(found[2].split(", ")) == row._fields
    # $1 and $2 are the lanes and their epochs.
    assert re.findall(r"\$(\d+)", found[1]) == [str(number) for number in range(3, 3 + len(row._fields))]
