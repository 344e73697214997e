"""`python -m tests.console.pictures`: take the screenshots of the console in the documentation.

With a folder: every page, wide and narrow, light and dark, to review a change of the layout.
"""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tests.console.scene import fill, past
from tests.console.serving import chromium, serving
from tests.integration.cli.conftest import Stock

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "pictures"
SHOWN = ("console-overview.png", "console-event.png", "console-dead.png", "console-events-dark.png")
"""What the documentation shows."""
SHOTS = {
    "overview": "/",
    "events": "/events",
    "event": "/event?id=0193c2f0-6b1e-7c3a-9f57-000000000003",
    "follower": "/event?id=0193c2f0-6b1e-7c3a-9f57-000000000007",
    "dead": "/dead",
    "edit": "/dead/edit?dead_letter_id=1",
    "destinations": "/destinations",
    "destination": "/destination?name=search",
    "keys": "/keys",
    "skip": "/keys/decide?action=skip",
    "retry": "/dead/decide?action=retry",
    "parked": "/events?state=retrying",
    "relays": "/relays",
    "inbox": "/inbox",
    "store": "/store?doctor=1",
    "audit": "/audit",
}


def shoot(browser: Browser, base: str, folder: Path, *, scheme: str, width: int) -> None:
    tail = ("-dark" if scheme == "dark" else "") + ("-phone" if width < 600 else "")
    context = browser.new_context(
        color_scheme="dark" if scheme == "dark" else "light", viewport={"width": width, "height": 860}
    )
    page = context.new_page()
    for name, path in SHOTS.items():
        page.goto(base + path)
        if name == "overview":
            page.wait_for_selector("#chart-lag canvas")
        page.screenshot(path=folder / f"console-{name}{tail}.png", full_page=width < 600)
    context.close()


def main(folder: Path) -> None:
    with TemporaryDirectory() as temporary:
        home = Path(temporary)
        stock = Stock(f"sqlite:///{home / 'shop.db'}")
        stock.run(lambda store: store.schema.apply())
        fill(stock)
        past(str(home / "shop.db"))
        with (
            serving(
                stock.url, home, LOGNAME="ada", PILLARBOX_CONSOLE__LOGIN="none", PILLARBOX_TRANSPORT="stdout://"
            ) as base,
            chromium() as browser,
        ):
            for scheme, width in product(("light", "dark"), (1440, 390)):
                shoot(browser, base, folder, scheme=scheme, width=width)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with TemporaryDirectory() as everything:
            main(Path(everything))
            for shown in SHOWN:
                (FOLDER / shown).write_bytes((Path(everything) / shown).read_bytes())
