"""A page of a real browser that detects foreign code, requests to other hosts and violations of the policy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page

_WITNESS = """
window.hits = 0;
window.xss = () => { window.hits += 1; };
document.addEventListener("securitypolicyviolation", (event) => {
  console.error(`CSP: ${event.violatedDirective} ${event.blockedURI}`);
});
"""


class Watched:
    """A page, and what it did that it should not have."""

    def __init__(self, page: Page, base: str) -> None:
        self.page, self.base = page, base
        self.wrong: list[str] = []
        page.add_init_script(_WITNESS)
        page.on("dialog", self._interrupted)
        page.on("pageerror", lambda error: self.wrong.append(f"error {error}"))
        page.on("console", lambda message: self._heard(message.type, message.text))
        page.on("request", lambda request: self._asked(request.url))

    def go(self, path: str) -> Page:
        self.page.goto(self.base + path)
        return self.page

    def check(self) -> None:
        """Nothing happened that must not."""
        assert self.page.evaluate("window.hits") == 0
        assert self.wrong == []

    def provoke(self) -> None:
        """Trigger all hover, focus and open events."""
        self.page.evaluate(
            """() => {
              for (const element of document.querySelectorAll("main *, header *")) {
                for (const kind of ["mouseover", "mouseenter", "focus", "toggle", "animationstart", "load"])
                  element.dispatchEvent(new Event(kind));
              }
              for (const link of document.querySelectorAll("a[href], form[action]")) {
                const to = new URL(link.href || link.action, location.href);
                if (to.origin !== location.origin) console.error(`leads elsewhere: ${to}`);
              }
            }"""
        )

    def _interrupted(self, dialog: Dialog) -> None:
        self.wrong.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def _heard(self, kind: str, text: str) -> None:
        if kind == "error" and "the server responded with a status of 4" not in text:
            self.wrong.append(text)

    def _asked(self, url: str) -> None:
        if not url.startswith((self.base, "data:")):
            self.wrong.append(f"request to {url}")


@contextmanager
def watched(
    browser: Browser, base: str, *, scheme: Literal["light", "dark"] = "light", width: int = 1280
) -> Iterator[Watched]:
    """A new page of a new browser profile."""
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 860})
    context.set_default_timeout(60_000)
    try:
        yield Watched(context.new_page(), base)
    finally:
        context.close()
