"""The result of a demo: a table and a summary for terminals, JSON for scripts."""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pillarbox.core.text import plural
from pillarbox.ops.demo.run import Outcome
from pillarbox.ops.demo.scene import Scene
from pillarbox.ops.demo.verdict import Account, Verdict

_COLUMNS = ("handled", "refused", "retried", "repeats", "lost", "phantom", "out of order")


def table(outcome: Outcome) -> RenderableType:
    """Show the results of all receivers and the summary."""
    accounts = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    accounts.add_column("receiver")
    for column in _COLUMNS:
        accounts.add_column(column, justify="right")
    for account in outcome.verdict.accounts:
        sound = [f"{number:,}" for number in (account.handled, account.refused, account.failed, account.repeats)]
        faults = [_fault(len(found)) for found in (account.lost, account.phantom, account.disordered)]
        accounts.add_row(account.receiver, *sound, *faults)
    return Group(accounts, *map(Text.from_markup, _sentences(outcome)))


def _fault(number: int) -> str:
    return f"[bold red]{number:,}[/]" if number else "[green]0[/]"


def _sentences(outcome: Outcome) -> list[str]:
    verdict = outcome.verdict
    said = (
        f"{plural(verdict.committed, 'event')} committed with their orders in {outcome.seconds:.1f} s, "
        f"{outcome.rolled_back:,} rolled back; {_killed(outcome.kills)}."
    )
    if not verdict.ok:
        return [said, *(f"[bold red]✘ {failure}[/]" for failure in verdict.failures)]
    return [said, f"[bold green]✔ Nothing lost, nothing invented, every order in order[/]{_repeats(verdict)}."]


def _killed(times: int) -> str:
    return {0: "no relay was killed", 1: "the relay was killed once"}.get(times, f"the relay was killed {times} times")


def _repeats(verdict: Verdict) -> str:
    if not verdict.most_repeats:
        return ", nothing sent twice"
    return f"; {verdict.repeats:,} sent twice (at most {verdict.most_repeats:,})"


def figures(scene: Scene, outcome: Outcome) -> dict[str, object]:
    """The same for scripts."""
    verdict = outcome.verdict
    return {
        "ok": verdict.ok,
        "failures": list(verdict.failures),
        "path": scene.title,
        "seconds": round(outcome.seconds, 3),
        "committed": verdict.committed,
        "rolled_back": outcome.rolled_back,
        "kills": outcome.kills,
        "epoch": outcome.epoch,
        "dead_letters": verdict.dead_letters,
        "repeats": verdict.repeats,
        "most_repeats": verdict.most_repeats,
        "receivers": [_account(account) for account in verdict.accounts],
    }


def _account(account: Account) -> dict[str, object]:
    return {
        "receiver": account.receiver,
        "handled": account.handled,
        "refused": account.refused,
        "retried": account.failed,
        "repeats": account.repeats,
        "lost": list(account.lost),
        "phantom": list(account.phantom),
        "out_of_order": list(account.disordered),
    }
