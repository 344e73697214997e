"""`pillarbox relay` with the settings file of an application, in this process: signals and spans are its own."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Mapping
from pathlib import Path
from socket import socket


def run_relay(config: Path, *, store: str, transport: str, settings: Mapping[str, str]) -> None:
    """Run it until it is stopped, which ends this process.

    store, transport: the servers of the application, whatever PILLARBOX_STORE and PILLARBOX_TRANSPORT name: they may be
    those of another one. settings: PILLARBOX_… variables; those that the environment sets already win.
    """
    os.environ.update(PILLARBOX_STORE=store, PILLARBOX_TRANSPORT=transport)
    for name, value in settings.items():
        os.environ.setdefault(name, value)
    sys.argv = ["pillarbox", "--config", str(config), "relay"]
    runpy.run_module("pillarbox", run_name="__main__", alter_sys=True)


def listening(port: socket | None) -> dict[str, str]:
    """The setting for a port that is free; the relay opens it itself."""
    if port is None:
        return {}
    host, number = port.getsockname()[:2]
    port.close()
    return {"PILLARBOX_RELAY__LISTEN": f"[{host}]:{number}" if ":" in host else f"{host}:{number}"}
