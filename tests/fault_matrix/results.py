"""The result of each cell after a run of its tests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

from tests.fault_matrix.cells import TITLES, Cell, Coverage, Engine, Row
from tests.tiers import Case


class NodeResult(StrEnum):
    """What became of the cases of a node."""

    PASSED = "passed"
    SKIPPED = "skipped"
    """At least one case did not run."""
    FAILED = "FAILED"
    """At least one case failed, or there is none."""


class Results:
    """The cases of a run, found by node."""

    def __init__(self, cases: Iterable[Case]) -> None:
        self._modules: dict[str, list[Case]] = defaultdict(list)
        for case in cases:
            self._modules[case.module].append(case)

    def of(self, node: str) -> NodeResult:
        """The result of a node: a test with or without its parameters, or a file."""
        path, *names = node.split("::")
        module = path.removesuffix(".py").replace("/", ".")
        found = list(self._file(module) if not names else self._test(".".join([module, *names[:-1]]), names[-1]))
        if not found or any(case.failed for case in found):
            return NodeResult.FAILED
        return NodeResult.PASSED if all(case.passed for case in found) else NodeResult.SKIPPED

    def of_cell(self, cell: Cell) -> str:
        """The text of a cell in the table."""
        results = {self.of(node) for node in cell.nodes}
        for worst in (NodeResult.FAILED, NodeResult.SKIPPED):
            if worst in results:
                return worst.value
        return cell.coverage.value

    def _file(self, module: str) -> Iterator[Case]:
        for name, cases in self._modules.items():
            if name == module or name.startswith(f"{module}."):
                yield from cases

    def _test(self, module: str, name: str) -> Iterator[Case]:
        for case in self._modules.get(module, ()):
            if case.name == name or case.name.partition("[")[0] == name:
                yield case


def table(rows: Sequence[Row], results: Results) -> Iterator[str]:
    """Yield a line per row, with the result of each engine."""
    width = max(len(row.name) for row in rows)
    columns = [max(len(TITLES[engine]), len(NodeResult.SKIPPED)) for engine in Engine]
    titles = (f"{TITLES[engine]:<{column}}" for engine, column in zip(Engine, columns, strict=True))
    yield "  ".join([f"{'fault':<{width}}", *titles]).rstrip()
    for row in rows:
        texts = zip(row.cells().values(), columns, strict=True)
        yield "  ".join(
            [f"{row.name:<{width}}", *(f"{results.of_cell(cell):<{column}}" for cell, column in texts)]
        ).rstrip()


def totals(rows: Sequence[Row], results: Results) -> str:
    """How many cells have which result."""
    found = [results.of_cell(cell) for row in rows for cell in row.cells().values()]
    order = (*NodeResult, *Coverage)
    return ", ".join(f"{found.count(name)} {name}" for name in order if name in found)
