"""The page of faults, made from the fault matrix.

`python -m tests.docs.faults_page` writes it.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.docs.pages import ROOT
from tests.fault_matrix.cells import TITLES, Cell, Coverage, Engine, Row, Section
from tests.fault_matrix.rows import ROWS, SECTIONS

PAGE = ROOT / "docs/explanation/faults.md"

_HEAD = """# Faults

Every fault that Pillarbox is to survive, on every engine where it applies, and the tests that inject it.
`python -m tests.docs.faults_page` writes this page from `tests/fault_matrix`.

`make faults` runs the tests and prints the same table with their results; a cell counts as shown only if all of its
tests ran and passed. [Run a drill](../how-to/run-a-drill.md) injects faults into your own servers,
[Evidence](evidence.md) has long runs, and [Guarantees](guarantees.md) says what must hold.

- **shown**: the tests inject the fault into this engine, and check what the row requires
- **partly**: the tests show less than the row requires; the section of the row says what is lacking
- **missing**: no test
- **untestable**: can happen to this engine, but not to what stands in for it in the tests
- **n/a**: cannot happen to this engine, or the engine takes no part in it

A row about a database runs with one transport, and a row about a transport with one store: not every pair of engines
is tested. Kafka is the mock cluster of librdkafka. Not tested at all: power loss and torn writes, clusters across
machines, versions that [supported versions](../reference/versions.md) does not list.
"""
_SHORT = {
    Coverage.SHOWN: "shown",
    Coverage.PARTLY: "partly",
    Coverage.MISSING: "**missing**",
    Coverage.UNTESTABLE: "untestable",
    Coverage.NOT_APPLICABLE: "n/a",
}


def page() -> str:
    """Return the page."""
    parts = [_HEAD, _totals(), ""]
    for section in SECTIONS:
        parts += [f"## {section.title}", "", *_table(section), ""]
        for row in section.rows:
            parts += [f"### {row.name}", "", f"{_sentence(row.fault)} Required: {row.shows}.", "", *_details(row), ""]
    return "\n".join(parts).rstrip() + "\n"


def _totals() -> str:
    found = [cell.coverage for row in ROWS for cell in row.cells().values()]
    applicable = len(found) - found.count(Coverage.NOT_APPLICABLE)
    return (
        f"{len(ROWS)} faults; of {applicable} cells that apply, {found.count(Coverage.SHOWN)} are shown, "
        f"{found.count(Coverage.PARTLY)} partly, {found.count(Coverage.MISSING)} are missing, "
        f"and {found.count(Coverage.UNTESTABLE)} cannot be tested here.\n"
    )


def _table(section: Section) -> Iterator[str]:
    yield f"| fault | {' | '.join(TITLES[engine] for engine in Engine)} |"
    yield f"|{'---|' * (len(Engine) + 1)}"
    for row in section.rows:
        cells = " | ".join(_SHORT[cell.coverage] for cell in row.cells().values())
        yield f"| [{row.name}](#{row.name}) | {cells} |"


def _details(row: Row) -> Iterator[str]:
    """Yield a line per engine; engines with the same cell share one."""
    engines: dict[Cell, list[str]] = {}
    for engine, cell in row.cells().items():
        engines.setdefault(cell, []).append(TITLES[engine])
    for cell, names in engines.items():
        yield f"- {', '.join(names)}: {_detail(cell)}"


def _detail(cell: Cell) -> str:
    tests = ", ".join(f"`{node}`" for node in cell.nodes)
    match cell.coverage:
        case Coverage.SHOWN:
            return tests
        case Coverage.PARTLY:
            return f"partly ({cell.text}): {tests}"
        case Coverage.MISSING:
            return f"missing{f' ({cell.text})' if cell.text else ''}"
        case Coverage.UNTESTABLE:
            return f"untestable ({cell.text})"
        case Coverage.NOT_APPLICABLE:
            return f"not applicable ({cell.text})"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
