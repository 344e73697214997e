"""`pillarbox exporter`: the metrics of the store, with or without a running relay."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import click

from pillarbox.ops.cli.context import current_settings, log_to_stderr
from pillarbox.ops.cli.output import as_json, print_json
from pillarbox.ops.cli.signals import stop_on_signals


@click.command()
@click.option(
    "--listen", metavar="HOST:PORT", default="127.0.0.1:9463", show_default=True, help="Address to listen on."
)
@as_json
def exporter(listen: str, as_json: bool) -> None:
    """Serve metrics and health of the store until SIGTERM or SIGINT.

    Relays export the same metrics of the store, but only while they run. With an exporter, backlog, age, dead letters
    and the number of relays are visible although no relay runs. Pages: /metrics, /livez, /readyz, /health.

    \b
    Examples:
      pillarbox exporter --listen 0.0.0.0:9463
      PILLARBOX_STORE=postgresql://app@127.0.0.1/shop pillarbox exporter
    """
    from pillarbox.ops.cli.store_access import name_default_store, refuse_memory
    from pillarbox.ops.importing import installed

    settings = current_settings()
    refuse_memory(settings)
    name_default_store()
    log_to_stderr()
    with installed():
        from pillarbox.ops.monitor.exporter import StoreExporter

        serving = StoreExporter(settings, listen)

    async def run() -> None:
        from pillarbox.ops.wiring import open_store

        stopped = asyncio.Event()
        stop_on_signals(stopped.set)
        async with aclosing(open_store(settings.store)) as store, serving.serve(store):
            if as_json:
                print_json({"listen": serving.address})
            else:
                click.echo(f"exporter: http://{serving.address}/metrics")
            await stopped.wait()

    asyncio.run(run())
