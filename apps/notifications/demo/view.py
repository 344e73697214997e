"""The output of the demo: a live table on a terminal, one line per second elsewhere, and the result as text or JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from apps.notifications.demo.environment import Environment
from apps.notifications.demo.progress import Cell, Progress
from apps.notifications.demo.scenario import Outcome
from apps.notifications.demo.users import USERS
from apps.notifications.domain import Channel

WIDTH = 100
LINE_EVERY = 1.0
LOG_LINES = 4

Show = Callable[[Progress], None]


def make_console() -> Console:
    """Standard output; a pipe has no width of its own."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=WIDTH)


@contextmanager
def live(environment: Environment, console: Console) -> Iterator[Show]:
    """A table, redrawn at every poll."""
    with Live(console=console, auto_refresh=False) as screen:
        yield lambda progress: screen.update(_panel(environment, progress), refresh=True)


@contextmanager
def lines(environment: Environment, console: Console) -> Iterator[Show]:
    console.print(environment.title)
    printed_at, printed = 0.0, 0

    def show(progress: Progress) -> None:
        nonlocal printed_at, printed
        for when, what in progress.log[printed:]:
            console.print(f"{when:6.1f} s  {what}", soft_wrap=True)
        printed = len(progress.log)
        if progress.elapsed >= printed_at:
            printed_at = progress.elapsed + LINE_EVERY
            console.print(_line(progress), soft_wrap=True)

    yield show


@contextmanager
def nothing() -> Iterator[Show]:
    """No output while the demo runs."""
    yield lambda progress: None


def _panel(environment: Environment, progress: Progress) -> RenderableType:
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True)
    grid.add_column("audience")
    grid.add_column("user")
    for channel in Channel:
        grid.add_column(channel, justify="right")
    for user in USERS:
        cells = (_state(progress, Cell(user.audience, user.user_id, channel)) for channel in Channel)
        grid.add_row(user.audience, f"{user.name}{' (asleep)' if user.asleep else ''}", *cells)
    mail = "[green]up[/]" if progress.mail_open else "[bold red]stopped[/]"
    head = f"{progress.elapsed:5.1f} s  {progress.phase}   {progress.events:,} events   mail server {mail}"
    latest = [f"[dim]{when:5.1f} s[/]  {what}" for when, what in progress.log[-LOG_LINES:]]
    return Panel(
        Group(head, grid, "\n".join(latest + [""] * (LOG_LINES - len(latest)))),
        title="[bold]notifications[/]",
        subtitle=f"[dim]{environment.title}[/]",
        box=box.ROUNDED,
        border_style="red",
        padding=(1, 2),
        width=WIDTH,
    )


def _state(progress: Progress, cell: Cell) -> Text:
    """Counts of delivered, waiting and dead; empty without notifications."""
    if not progress.saved[cell]:
        return Text("")
    state = Text(f"{progress.delivered[cell]} ✔", style="green")
    if waiting := progress.saved[cell] - progress.delivered[cell] - progress.dead[cell]:
        state.append(f" {waiting} …", style="yellow")
    if dead := progress.dead[cell]:
        state.append(f" {dead} ✘", style="bold red")
    return state


def _line(progress: Progress) -> str:
    saved, delivered = progress.by_channel(progress.saved), progress.by_channel(progress.delivered)
    channels = ", ".join(f"{channel} {delivered[channel]} of {saved[channel]}" for channel in Channel)
    mail = "" if progress.mail_open else "; the mail server is stopped"
    return f"{progress.elapsed:6.1f} s  {progress.phase}: {progress.events:,} events; delivered {channels}{mail}"


def report(outcome: Outcome) -> RenderableType:
    """The totals and the result of the verification, as text."""
    verification = outcome.verification
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("channel", "delivered", "waiting"):
        table.add_column(heading, justify="left" if heading == "channel" else "right")
    for channel in Channel:
        table.add_row(channel, f"{verification.delivered[channel]:,}", f"{verification.waiting[channel]:,}")
    summary = (
        f"{outcome.events:,} events became {verification.notifications:,} notifications in {outcome.seconds:.1f} s; "
        f"the mail server was stopped {outcome.outages} time{'' if outcome.outages == 1 else 's'}, and "
        f"{outcome.delivered_during_outages:,} push and SMS were delivered meanwhile."
    )
    if not verification.ok:
        return Group(table, summary, *(Text(f"✘ {failure}", style="bold red") for failure in verification.failures))
    return Group(
        table,
        summary,
        Text(
            "✔ Verified: every notification was created once; every delivery is completed or waiting.",
            style="bold green",
        ),
    )


def result_of(environment: Environment, outcome: Outcome) -> dict[str, object]:
    """The result as JSON."""
    verification = outcome.verification
    return {
        "ok": verification.ok,
        "failures": list(verification.failures),
        "path": environment.title,
        "seconds": round(outcome.seconds, 3),
        "events": outcome.events,
        "notifications": verification.notifications,
        "delivered": {str(channel): verification.delivered[channel] for channel in Channel},
        "waiting": {str(channel): verification.waiting[channel] for channel in Channel},
        "duplicates": verification.duplicates,
        "outages": outcome.outages,
        "delivered_during_outages": outcome.delivered_during_outages,
    }
