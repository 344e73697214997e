"""`pillarbox bench`: measure the relay on the store and the transport of the settings."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from pillarbox.ops.cli.context import current_settings, quiet_drivers
from pillarbox.ops.cli.output import as_json, print_facts, print_json, progress
from pillarbox.ops.cli.relay import collect_rarely
from pillarbox.ops.cli.signals import SIGNALS
from pillarbox.ops.cli.store_access import refuse_memory

if TYPE_CHECKING:
    from pillarbox.ops.bench.measurement import BenchmarkResult, OnPhase
    from pillarbox.ops.bench.target import BenchmarkTarget


@click.command()
@click.option(
    "--seconds",
    type=click.FloatRange(min=1),
    default=20,
    show_default=True,
    metavar="N",
    help="Seconds to measure, approximately.",
)
@click.option("--transport", default="", metavar="NAME", help="Broker transport of the settings; default: the first.")
@as_json
def bench(seconds: float, transport: str, as_json: bool) -> None:
    """Measure a relay on your store and transport: rate, latency, CPU, and the limiting part.

    The benchmark creates tables with a separate prefix (on SQLite, a separate file) and a separate queue, and
    deletes them at the end, also after Ctrl-C or an error. It does not use your tables, queues and handlers, but it
    loads both servers. Without a broker in the settings, events go to a handler that does nothing.

    \b
    Examples:
      pillarbox bench
      pillarbox bench --seconds 60 --json
      PILLARBOX_STORE=postgresql://app@127.0.0.1/shop PILLARBOX_TRANSPORT=amqp://app@127.0.0.1/ pillarbox bench
    """
    from pillarbox.ops.bench.measurement import PHASES
    from pillarbox.ops.bench.report import as_json as result_json
    from pillarbox.ops.bench.report import lines
    from pillarbox.ops.bench.target import BenchmarkTarget

    settings = current_settings()
    refuse_memory(settings)
    quiet_drivers()
    target = BenchmarkTarget.of(settings, transport)
    collect_rarely()
    with progress("bench", size=PHASES) as advance:
        result = asyncio.run(_measure(target, seconds, lambda events: advance(amount=1, events=events)))
    fields = result_json(target, result)
    if as_json:
        print_json(fields)
    else:
        print_facts(lines(fields))


async def _measure(target: BenchmarkTarget, seconds: float, on_phase: OnPhase) -> BenchmarkResult:
    """Run the benchmark until its end or the first signal, and clean up; a second signal ends the process at once."""
    from pillarbox.ops.bench.measurement import Benchmark

    task = asyncio.create_task(Benchmark(target, seconds, on_phase).run())
    loop = asyncio.get_running_loop()

    def stop() -> None:
        for number in SIGNALS:
            loop.remove_signal_handler(number)
        task.cancel()

    for number in SIGNALS:
        loop.add_signal_handler(number, stop)
    try:
        return await task
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
