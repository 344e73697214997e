"""The result of a demo: a table and a summary for terminals, JSON for scripts."""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pillarbox.core.text import plural
from pillarbox.ops.demo.environment import DemoEnvironment
from pillarbox.ops.demo.run import DemoResult
from pillarbox.ops.demo.verification import ReceiverResult, Verification

_COLUMNS = ("handled", "rejected", "retried", "duplicates", "lost", "phantom", "out of order")


def table(demo: DemoResult) -> RenderableType:
    """Return the results of all receivers and the summary."""
    results = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    results.add_column("receiver")
    for column in _COLUMNS:
        results.add_column(column, justify="right")
    for result in demo.verification.results:
        counts = [f"{number:,}" for number in (result.handled, result.rejected, result.failed, result.duplicates)]
        faults = [_fault(len(found)) for found in (result.lost, result.phantom, result.out_of_order)]
        results.add_row(result.receiver, *counts, *faults)
    return Group(results, *map(Text.from_markup, _summary(demo)))


def _fault(number: int) -> str:
    return f"[bold red]{number:,}[/]" if number else "[green]0[/]"


def _summary(demo: DemoResult) -> list[str]:
    verification = demo.verification
    totals = (
        f"{plural(verification.committed, 'event')} committed in {demo.seconds:.1f} s, "
        f"{demo.rolled_back:,} rolled back; {_killed(demo.kills)}."
    )
    if not verification.ok:
        return [totals, *(f"[bold red]✘ {failure}[/]" for failure in verification.failures)]
    return [
        totals,
        f"[bold green]✔ No event lost, no phantom event, every order in sequence[/]{_duplicates(verification)}.",
    ]


def _killed(times: int) -> str:
    return {0: "no relay was killed", 1: "the relay was killed once"}.get(times, f"the relay was killed {times} times")


def _duplicates(verification: Verification) -> str:
    if not verification.max_duplicates:
        return ", no duplicates"
    return f"; {plural(verification.duplicates, 'duplicate')} (at most {verification.max_duplicates:,} possible)"


def as_json(environment: DemoEnvironment, demo: DemoResult) -> dict[str, object]:
    """Return the result as the JSON of `--json`."""
    verification = demo.verification
    return {
        "ok": verification.ok,
        "failures": list(verification.failures),
        "path": environment.title,
        "seconds": round(demo.seconds, 3),
        "committed": verification.committed,
        "rolled_back": demo.rolled_back,
        "kills": demo.kills,
        "epoch": demo.epoch,
        "dead_letters": verification.dead_letters,
        "duplicates": verification.duplicates,
        "max_duplicates": verification.max_duplicates,
        "receivers": [_result(result) for result in verification.results],
    }


def _result(result: ReceiverResult) -> dict[str, object]:
    return {
        "receiver": result.receiver,
        "handled": result.handled,
        "rejected": result.rejected,
        "retried": result.failed,
        "duplicates": result.duplicates,
        "lost": list(result.lost),
        "phantom": list(result.phantom),
        "out_of_order": list(result.out_of_order),
    }
