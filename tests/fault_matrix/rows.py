"""All rows of the matrix."""

from tests.fault_matrix.brokers import BROKERS
from tests.fault_matrix.cells import Row, Section
from tests.fault_matrix.databases import DATABASES
from tests.fault_matrix.links import CLOCKS, LINKS
from tests.fault_matrix.load import CONTENT, LOAD, MACHINE
from tests.fault_matrix.processes import PROCESSES

SECTIONS: tuple[Section, ...] = (PROCESSES, DATABASES, BROKERS, LINKS, CLOCKS, LOAD, CONTENT, MACHINE)
ROWS: tuple[Row, ...] = tuple(row for section in SECTIONS for row in section.rows)


def nodes_of(rows: tuple[Row, ...] = ROWS) -> list[str]:
    """The ids of all tests of these rows, each once."""
    return sorted({node for row in rows for cell in row.cells().values() for node in cell.nodes})
