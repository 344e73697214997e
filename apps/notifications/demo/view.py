"""A live table for a terminal, a line a second for a pipe, and how it ended for people and for scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from apps.notifications.demo.cast import CAST
from apps.notifications.demo.play import Outcome
from apps.notifications.demo.stage import Stage
from apps.notifications.demo.watching import Cell, Figures
from apps.notifications.words import Channel

WIDTH = 100
LINE_EVERY = 1.0
HAPPENINGS = 4

Show = Callable[[Figures], None]


def make_console() -> Console:
    """Standard output; a pipe has no width of its own."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=WIDTH)


@contextmanager
def live(stage: Stage, console: Console) -> Iterator[Show]:
    """Redrawn at every look."""
    with Live(console=console, auto_refresh=False) as screen:
        yield lambda figures: screen.update(_panel(stage, figures), refresh=True)


@contextmanager
def lines(stage: Stage, console: Console) -> Iterator[Show]:
    console.print(stage.title)
    told_at, happened = 0.0, 0

    def show(figures: Figures) -> None:
        nonlocal told_at, happened
        for when, what in figures.happenings[happened:]:
            console.print(f"{when:6.1f} s  {what}", soft_wrap=True)
        happened = len(figures.happenings)
        if figures.elapsed >= told_at:
            told_at = figures.elapsed + LINE_EVERY
            console.print(_line(figures), soft_wrap=True)

    yield show


@contextmanager
def nothing() -> Iterator[Show]:
    """Only the verdict counts."""
    yield lambda figures: None


def _panel(stage: Stage, figures: Figures) -> RenderableType:
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True)
    grid.add_column("audience")
    grid.add_column("user")
    for channel in Channel:
        grid.add_column(channel, justify="right")
    for person in CAST:
        cells = (_state(figures, Cell(person.audience, person.user_id, channel)) for channel in Channel)
        grid.add_row(person.audience, f"{person.name}{' (asleep)' if person.asleep else ''}", *cells)
    mail = "[green]up[/]" if figures.mail_open else "[bold red]broken[/]"
    head = f"{figures.elapsed:5.1f} s  {figures.phase}   {figures.events:,} events   mail server {mail}"
    latest = [f"[dim]{when:5.1f} s[/]  {what}" for when, what in figures.happenings[-HAPPENINGS:]]
    return Panel(
        Group(head, grid, "\n".join(latest + [""] * (HAPPENINGS - len(latest)))),
        title="[bold]notifications[/]",
        subtitle=f"[dim]{stage.title}[/]",
        box=box.ROUNDED,
        border_style="red",
        padding=(1, 2),
        width=WIDTH,
    )


def _state(figures: Figures, cell: Cell) -> Text:
    """Delivered, waiting, dead; nothing where nothing was told."""
    if not figures.told[cell]:
        return Text("")
    state = Text(f"{figures.delivered[cell]} ✔", style="green")
    if waiting := figures.told[cell] - figures.delivered[cell] - figures.dead[cell]:
        state.append(f" {waiting} …", style="yellow")
    if dead := figures.dead[cell]:
        state.append(f" {dead} ✘", style="bold red")
    return state


def _line(figures: Figures) -> str:
    told, delivered = figures.by_channel(figures.told), figures.by_channel(figures.delivered)
    channels = ", ".join(f"{channel} {delivered[channel]} of {told[channel]}" for channel in Channel)
    mail = "" if figures.mail_open else "; the mail server is broken"
    return f"{figures.elapsed:6.1f} s  {figures.phase}: {figures.events:,} events; delivered {channels}{mail}"


def report(outcome: Outcome) -> RenderableType:
    """The figures and the verdict, for people."""
    verdict = outcome.verdict
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("channel", "delivered", "waiting"):
        table.add_column(heading, justify="left" if heading == "channel" else "right")
    for channel in Channel:
        table.add_row(channel, f"{verdict.delivered[channel]:,}", f"{verdict.waiting[channel]:,}")
    said = (
        f"{outcome.events:,} events became {verdict.notifications:,} notifications in {outcome.seconds:.1f} s; "
        f"the mail server broke {outcome.breakdowns} time{'' if outcome.breakdowns == 1 else 's'}, and "
        f"{outcome.pushed_meanwhile:,} push and SMS arrived meanwhile."
    )
    if not verdict.ok:
        return Group(table, said, *(Text(f"✘ {failure}", style="bold red") for failure in verdict.failures))
    return Group(table, said, Text("✔ Every notification once, every delivery done or waiting.", style="bold green"))


def figures_of(stage: Stage, outcome: Outcome) -> dict[str, object]:
    """The same for scripts."""
    verdict = outcome.verdict
    return {
        "ok": verdict.ok,
        "failures": list(verdict.failures),
        "path": stage.title,
        "seconds": round(outcome.seconds, 3),
        "events": outcome.events,
        "notifications": verdict.notifications,
        "delivered": {str(channel): verdict.delivered[channel] for channel in Channel},
        "waiting": {str(channel): verdict.waiting[channel] for channel in Channel},
        "repeats": verdict.repeats,
        "breakdowns": outcome.breakdowns,
        "pushed_meanwhile": outcome.pushed_meanwhile,
    }
