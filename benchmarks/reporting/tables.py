"""A run as tables in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.results import Cell, Contender, Run, Spread

COMPARED_WITH = {"options": "plain", "hot keys": "20,000 keys", "relays": "1"}
"""The contender that the others of a cell are compared with."""

Column = tuple[str, Callable[[Contender], str]]


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Text in the first column, numbers in the others."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def thousands(spread: Spread) -> str:
    """`12,300 (11,900 to 12,800)`; without the spread if there was one sample."""
    return _with_spread(spread, lambda value: f"{significant(value):,}")


def ratio(spread: Spread) -> str:
    return _with_spread(spread, lambda value: f"{value:.2f}")


def milliseconds(spread: Spread) -> str:
    return _with_spread(spread, lambda value: f"{value:.1f}")


def significant(value: float) -> int:
    """Three digits: the rest is noise."""
    return round(float(f"{value:.3g}"))


def of_cell(cell: Cell, cores: int, *, compared_with: str = "") -> str:
    """One row per contender, and the raw limit; `compared_with` names a contender."""
    columns = _columns(cell, cores, compared_with)
    rows = []
    if cell.raw:
        rows.append(["raw limit", thousands(Spread.of(cell.raw)), "1.00", *[""] * (len(columns) - 2)])
    for one in cell.contenders:
        if one.samples:
            rows.append([one.name, *(show(one) for _, show in columns)])
        else:
            rows.append([one.name, f"not measured: {_one_line(one.skipped)}", *[""] * (len(columns) - 1)])
    return table(["", *(head for head, _ in columns)], rows)


def of_run(run: Run) -> str:
    """Every table of a run."""
    parts = [f"{cell.name}\n\n{with_remarks(cell, run.cores)}" for cell in run.cells]
    if run.latencies:
        parts.append(f"latency\n\n{of_latencies(run)}")
    if run.record:
        parts.append(f"record\n\n{run.record}")
    return "\n\n".join(part.rstrip() for part in parts)


def with_remarks(cell: Cell, cores: int) -> str:
    """The table of a cell, with remarks."""
    parts = (of_cell(cell, cores, compared_with=COMPARED_WITH.get(cell.name, "")), of_confirms(cell), of_peers(cell))
    return "\n\n".join(filter(None, parts))


def of_latencies(run: Run) -> str:
    heads = {
        "reached": ("achieved", thousands),
        "p50 ms": ("p50", milliseconds),
        "p99 ms": ("p99", milliseconds),
        "longest ms": ("longest", milliseconds),
        "floor p50": ("floor_p50", milliseconds),
        "floor p99": ("floor_p99", milliseconds),
        "p50 of floor": ("p50_ratio", ratio),
        "p99 of floor": ("p99_ratio", ratio),
    }
    rows = [[f"{rate:,}", *(show(run.latency(rate, what)) for what, show in heads.values())] for rate in run.rates]
    return table(["events/s", *heads], rows)


def of_confirms(cell: Cell) -> str:
    """What a queue confirms with few messages in flight, and what strict order makes of it."""
    if not cell.confirms:
        return ""
    texts = [
        f"{thousands(Spread.of(rates))} messages a second with {number} in flight"
        for number, rates in cell.confirms.items()
    ]
    return f"The queue confirms {' and '.join(texts)}.{_of_confirms(cell)}"


def _of_confirms(cell: Cell) -> str:
    """Each strict contender relative to the rate that its round trips allow; with many keys also to the usual rate."""
    names = {one.name for one in cell.contenders if one.samples}
    if not {"1 key, strict", "50 keys, strict", "20,000 keys"} <= names:
        return ""
    usual = [sample.rate for sample in cell["20,000 keys"].samples]
    bounds = {
        "1 key, strict": cell.confirms["1"],
        "transport alone, 1 in flight": cell.confirms["1"],
        "50 keys, strict": [min(pair) for pair in zip(cell.confirms["50"], usual, strict=False)],
        "transport alone, 50 in flight": cell.confirms["50"],
    }
    parts = []
    for name, bound in bounds.items():
        if name not in names:
            continue
        rates = [sample.rate for sample in cell[name].samples]
        parts.append(f"{name}: {ratio(Spread.of([rate / most for rate, most in zip(rates, bound, strict=False)]))}")
    return f" Of the rate that this allows, with keys at most that of 20,000 keys: {'; '.join(parts)}."


def of_peers(cell: Cell) -> str:
    """How many times as fast as the fastest peer Pillarbox is, as a sentence."""
    ours = [one for one in cell.contenders if one.samples and one.name.startswith("Pillarbox")]
    peers = [one for one in cell.contenders if one.samples and one not in ours]
    if not ours or not peers:
        return ""
    best = max(peers, key=lambda one: one.spread("rate").median)
    times = [f"{_variant(one.name)} is {ratio(one.ratios(best))} times" for one in ours]
    return f"On a {cell.queue} queue {' and '.join(times)} as fast as {_variant(best.name)}, the fastest peer."


def _variant(name: str) -> str:
    """`name (variant)` of a contender that is called `name, variant`."""
    base, _, variant = name.partition(", ")
    return f"{base} ({variant})" if variant else base


def _columns(cell: Cell, cores: int, compared_with: str) -> list[Column]:
    columns: list[Column] = [("events/s", lambda one: thousands(one.spread("rate")))]
    if cell.raw:
        columns.append(("of raw", lambda one: ratio(one.shares(cell.raw))))
    if compared_with and cell[compared_with].samples:
        columns.append((f"of {compared_with}", lambda one: ratio(one.ratios(cell[compared_with]))))
    if cell.queue:
        columns.append(("ceiling", lambda one: f"{significant(one.ceiling(cores)):,}"))
    columns.append(("Python µs", lambda one: f"{one.spread('python').median:.0f}"))
    if cell.queue:
        columns.append(("PostgreSQL µs", lambda one: f"{one.spread('postgres').median:.0f}"))
        columns.append(("RabbitMQ µs", lambda one: f"{one.spread('rabbitmq').median:.0f}"))
    columns.append(("MiB", lambda one: f"{one.spread('memory').most:.0f}"))
    if any(one.calls is not None for one in cell.contenders):
        columns.append(("calls", lambda one: "" if one.calls is None else f"{one.calls:.0f}"))
        columns.append(("statements", lambda one: "" if one.statements is None else f"{one.statements:.3f}"))
    return columns


def _with_spread(spread: Spread, show: Callable[[float], str]) -> str:
    if spread.least == spread.most:
        return show(spread.median)
    return f"{show(spread.median)} ({show(spread.least)} to {show(spread.most)})"


def _one_line(text: str) -> str:
    return " ".join(text.split())[-200:].replace("|", "/")
