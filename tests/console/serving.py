"""`pillarbox console` as a process, and real browsers."""

from __future__ import annotations

import signal
import subprocess
import sys
from asyncio import events
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.integration.cli.running import environment
from tests.servers.debian import CHROMIUM
from tests.servers.ports import free_port, is_open
from tests.servers.waiting import wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = "--host-resolver-rules=MAP console.test 127.0.0.1, MAP evil.test 127.0.0.1"
"""Hosts that are not loopback by their names, for the browser alone."""


@contextmanager
def serving(url: str, folder: Path, *arguments: str, **variables: str) -> Iterator[str]:
    """The address of a console over a store, for as long as the block is open."""
    port = free_port()
    given = {"PILLARBOX_STORE": url, "PILLARBOX_CONSOLE__LISTEN": f"127.0.0.1:{port}"} | variables
    log = folder / f"console-{port}.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "pillarbox", "console", *arguments],
            env=environment(given),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_until(lambda: is_open(port) or process.poll() is not None, bound=90, what="the console listens")
        if process.poll() is not None:
            raise RuntimeError(f"the console ended: {log.read_text()}")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=120)
        finally:
            process.kill()
            process.wait()


def chromium() -> AbstractContextManager[Browser]:
    """A real browser, to be entered. Raises MissingServer.

    While it is open, this thread has a running event loop: nothing else may start one outside `released_loop`.
    """
    return _launched(CHROMIUM.path())


@contextmanager
def _launched(path: str) -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu", NAMES])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def released_loop() -> Iterator[None]:
    """Take the browser's event loop out of this thread: meanwhile others may run, and the browser does nothing."""
    loop = events.get_running_loop()
    events._set_running_loop(None)
    try:
        yield
    finally:
        events._set_running_loop(loop)
