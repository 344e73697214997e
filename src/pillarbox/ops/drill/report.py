"""The report of a drill on a terminal: a table, and one sentence per violation."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

CONCLUSIONS = {
    "passed": ("passed: every guarantee held", "bold green"),
    "failed": ("FAILED", "bold red"),
    "void": ("void: {reasons}, so that this run proves nothing; run it for longer", "bold yellow"),
}


def conclusion(report: dict[str, Any]) -> tuple[str, str]:
    """Return the conclusion as a sentence, with the faults that did not take effect, and its style."""
    text, style = CONCLUSIONS[report["conclusion"]]
    if report["conclusion"] == "void":
        text = text.format(reasons=", and ".join(report["void_reasons"]))
    missing = [kind for kind, counts in report["faults"].items() if not counts["effective"]]
    if report["conclusion"] == "passed" and missing:
        text = f"{text}; not exercised: {', '.join(missing)}; run it for longer"
    return text, style


def facts(report: dict[str, Any]) -> list[tuple[str, str]]:
    """Return label and value of each line; report: from `DrillResult.as_json`."""
    order = report["order_violations"]
    bound = f"at most {report['max_duplicates']:,} possible; {report['duplicates_per_crash']:g} per crash"
    found = [
        ("path", f"{report['store']} {report['store_version']} → relays → {report['transport']}"),
        ("seed", str(report["seed"])),
        ("committed", f"{report['committed']:,} in {report['seconds']:g} s; {report['rolled_back']:,} rolled back"),
        ("lost", f"{report['lost']:,}"),
        ("phantom", f"{report['phantom']:,}"),
        ("duplicates", f"{report['duplicates']:,}; {bound}"),
        ("order violations", "not known" if order is None else f"{order:,}"),
        ("stale settlements", f"{report['stale_settlements']:,}"),
        ("wrong effects", f"{report['wrong_effects']:,}"),
        ("stuck", f"{report['stuck']:,}"),
        ("dead letters", f"{report['dead_letters']:,}"),
    ]
    if report["unknown_outcomes"]:
        found.append(("unknown outcomes", f"{report['unknown_outcomes']:,} transactions, decided by the database"))
    return found


def faults(report: dict[str, Any]) -> list[tuple[str, str, str, str, str]]:
    """Return kind, executed, effective, p50 and p99 of the recovery of each kind of fault."""
    rows: list[tuple[str, str, str, str, str]] = []
    for kind, counts in report["faults"].items():
        recovery = report["recovery"].get(kind)
        p50, p99 = (f"{recovery['p50']:.2f} s", f"{recovery['p99']:.2f} s") if recovery else ("", "")
        rows.append((kind, f"{counts['executed']:,}", f"{counts['effective']:,}", p50, p99))
    return rows


FAULT_COLUMNS = ("fault", "executed", "took effect", "recovery p50", "recovery p99")


def table(report: dict[str, Any]) -> RenderableType:
    """Return the report for a terminal."""
    lines = Table.grid(padding=(0, 2))
    for label, value in facts(report):
        lines.add_row(label, Text(value))
    happened = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(FAULT_COLUMNS):
        happened.add_column(column, justify="right" if number else "left")
    for row in faults(report):
        happened.add_row(*row)
    text, style = conclusion(report)
    violations = [Text(violation, style="red") for violation in report["violations"]]
    warnings = [Text(f"warning: {warning}", style="yellow") for warning in report["warnings"]]
    return Group(lines, happened, Text(text, style=style), *violations, *warnings)
