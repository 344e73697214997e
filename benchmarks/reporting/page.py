"""The page of the documentation and the section of the README, from a run and the text in `page.md`."""

from __future__ import annotations

import re
from pathlib import Path
from string import Template

from benchmarks.reporting import plots, tables, transports
from benchmarks.reporting.transports import TransportRun
from benchmarks.results import Cell, Run, Spread

TEMPLATE = Path(__file__).with_name("page.md")
PICTURES = "../pictures"
BEGIN, END = "<!-- benchmarks: begin -->", "<!-- benchmarks: end -->"


def page(run: Run, beside_clients: TransportRun | None) -> str:
    """`docs/reference/benchmarks.md`."""
    parts = {name.replace(" ", "_").replace(",", ""): _part(run, name) for name in _CELLS}
    return Template(TEMPLATE.read_text()).substitute(
        parts,
        machine=machine(run),
        latency=_latency(run),
        record=_record(run),
        transports=transports.section(beside_clients),
    )


def readme(run: Run, text: str) -> str:
    """The README with the section between its two marks made anew."""
    section = f"{BEGIN}\n{comparison(run)}\n{END}"
    return re.sub(f"{re.escape(BEGIN)}.*{re.escape(END)}", lambda _: section, text, flags=re.DOTALL)


def comparison(run: Run) -> str:
    """Pillarbox and its peers on each queue type, in short."""
    cells = [cell for cell in run.cells if cell.name.startswith("peers, ")]
    if not cells:
        return "The last run was without peers."
    names = dict.fromkeys(one.name for cell in cells for one in cell.contenders)
    rows = [["publisher without an outbox (upper bound)", *(tables.thousands(Spread.of(cell.raw)) for cell in cells)]]
    rows += [[name, *(_rate(cell, name) for cell in cells)] for name in names]
    table = tables.table(["events/s", *(f"{cell.queue} queue" for cell in cells)], rows)
    return "\n\n".join(filter(None, [machine(run), table, *map(tables.of_peers, cells)]))


def machine(run: Run) -> str:
    """The machine and the kind of run, on which the results depend."""
    machine = run.machine
    kind = "a quick run, one sample each" if run.quick else "median (min to max) of one full run"
    return (
        f"Measured on {run.started[:10]} with `make bench` ({kind}): {run.cores} cores, shared by "
        f"Python {machine['python']}, PostgreSQL {machine['postgres']} with fsync on "
        f"and RabbitMQ {machine['rabbitmq']}; "
        "320-byte payloads, persistent, mandatory, confirmed; every event was found in the queue."
    )


_CELLS = (
    "quorum",
    "classic",
    "options",
    "hot keys",
    "relays",
    "backlogs",
    "embedded",
    "peers, quorum",
    "peers, classic",
)


def _part(run: Run, name: str) -> str:
    cell = run.cell(name)
    if cell is None:
        return "Not part of this run."
    shown, picture = tables.with_remarks(cell, run.cores), f"bench-{name.replace(', ', '-')}.svg"
    return (
        f"{shown}\n\n![Events a second, as in the table]({PICTURES}/{picture})"
        if picture in plots.of_run(run)
        else shown
    )


def _latency(run: Run) -> str:
    if not run.latencies:
        return "Not part of this run."
    return f"{tables.of_latencies(run)}\n\n![The same as bars]({PICTURES}/bench-latency.svg)"


def _record(run: Run) -> str:
    return f"```\n{run.record}\n```" if run.record else "Not part of this run."


def _rate(cell: Cell, name: str) -> str:
    one = next((one for one in cell.contenders if one.name == name), None)
    return tables.thousands(one.spread("rate")) if one and one.samples else "not measured"
