"""`pillarbox console` as a process of its own, and browsers to look at it with."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.integration.cli.running import environment
from tests.servers.debian import CHROMIUM
from tests.servers.ports import free_port, is_open
from tests.servers.waiting import wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Browser


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


def chromium(*arguments: str) -> AbstractContextManager[Browser]:
    """A real browser with these arguments, to be entered. Raises MissingServer.

    While it is open, this thread has a running event loop: nothing else may start one.
    """
    return _launched(CHROMIUM.path(), arguments)


@contextmanager
def _launched(path: str, arguments: Sequence[str]) -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu", *arguments])
        try:
            yield browser
        finally:
            browser.close()
