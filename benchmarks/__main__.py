"""`make bench`: measure everything on private servers; `python -m benchmarks report run.json`: write the pages."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from benchmarks.cells import QUICK, WHOLE
from benchmarks.draining import private_servers
from benchmarks.harness import Harness, OnProgress
from benchmarks.processes import ROOT
from benchmarks.reporting import page, plots, tables, transports
from benchmarks.results import Run


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--quick", is_flag=True, help="At most 5 minutes instead of 60: few events, one round, tuned peers only.")
@click.option("--only", multiple=True, metavar="CELL", help="Measure this cell; may be repeated. Default: all.")
@click.option("--without-peers", is_flag=True, help="Leave other outboxes out, and install nothing.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=ROOT / "build" / "bench",
    help="Where run.json and the plots go. Default: build/bench.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the run as JSON instead of tables.")
@click.pass_context
def main(
    context: click.Context, quick: bool, only: tuple[str, ...], without_peers: bool, out: Path, as_json: bool
) -> None:
    """Measure Pillarbox, the broker's raw limit and other outboxes on private servers.

    \b
    Examples:
      make bench ARGS=--quick
      python -m benchmarks --quick --only quorum --only "hot keys"
      python -m benchmarks report build/bench/run.json
    """
    if context.invoked_subcommand is not None:
        return
    try:
        harness = Harness(QUICK if quick else WHOLE, only=only, without_peers=without_peers)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    with private_servers() as servers, _progress(harness.turns) as on_progress:
        run = harness.run(servers, on_progress)
    out.mkdir(parents=True, exist_ok=True)
    run.write(out / "run.json")
    for name, plot in plots.of_run(run).items():
        (out / name).write_text(plot)
    click.echo((out / "run.json").read_text() if as_json else tables.of_run(run), nl=not as_json)
    click.echo(f"{out / 'run.json'}: {run.seconds / 60:.0f} min", err=True)


@main.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
def report(file: Path) -> None:
    """Write the documentation's page of benchmarks and the comparison in the README from a run's JSON."""
    run = Run.read(file)
    run.write(ROOT / "docs" / "reference" / "benchmarks.json")
    (ROOT / "docs" / "reference" / "benchmarks.md").write_text(page.page(run, transports.stored()))
    readme = ROOT / "README.md"
    readme.write_text(page.readme(run, readme.read_text()))
    pictures = ROOT / "docs" / "pictures"
    for old in pictures.glob("bench-*.svg"):
        old.unlink()
    for name, plot in plots.of_run(run).items():
        (pictures / name).write_text(plot)


@contextmanager
def _progress(turns: int) -> Iterator[OnProgress]:
    """A bar on a terminal, else a line for each turn; both on standard error."""
    if not sys.stderr.isatty():
        yield lambda what: click.echo(what, err=True)
        return
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=turns)
        done = -1

        def on_progress(what: str) -> None:
            nonlocal done
            done += 1
            bar.update(task, completed=done, description=what)

        yield on_progress


if __name__ == "__main__":
    main()
