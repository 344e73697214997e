"""Runs `pillarbox relay` with the settings file of an application in this process, so that it handles the signals."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Mapping
from pathlib import Path
from socket import socket


def run_relay(config: Path, *, store: str, transport: str, settings: Mapping[str, str]) -> None:
    """Run the relay until it is stopped; then the process exits.

    store, transport: the servers of the application; they override PILLARBOX_STORE and PILLARBOX_TRANSPORT, which may
    belong to another application. settings: PILLARBOX_… variables; the environment takes precedence.
    """
    os.environ.update(PILLARBOX_STORE=store, PILLARBOX_TRANSPORT=transport)
    for name, value in settings.items():
        os.environ.setdefault(name, value)
    sys.argv = ["pillarbox", "--config", str(config), "relay"]
    runpy.run_module("pillarbox", run_name="__main__", alter_sys=True)


def listening(port: socket | None) -> dict[str, str]:
    """The setting for a free port; the port is closed here, because the relay opens it itself."""
    if port is None:
        return {}
    host, number = port.getsockname()[:2]
    port.close()
    return {"PILLARBOX_RELAY__LISTEN": f"[{host}]:{number}" if ":" in host else f"{host}:{number}"}
