"""What all pages share: the store, the way people log in, the rules, and how pages are drawn."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from typing import Any, cast

from jinja2 import Environment, PackageLoader, StrictUndefined

from pillarbox.admin.admin import AdminStore
from pillarbox.ops.console import words
from pillarbox.ops.console.examination import Examination
from pillarbox.ops.console.figures import Lookout
from pillarbox.ops.console.logins import Login
from pillarbox.ops.console.logouts import Logouts
from pillarbox.ops.console.masking import Masks
from pillarbox.ops.console.sessions import Signer
from pillarbox.ops.formatting import format_bytes, format_latency
from pillarbox.relay.routing import rate_text


@dataclass(kw_only=True)
class Desk:
    """One console."""

    store: AdminStore
    login: Login
    signer: Signer
    masks: Masks
    slo: float
    """Seconds that an event may wait before the oldest age turns red."""
    session: float
    """Seconds that a login lasts."""
    read_only: bool
    title: str
    max_payload: int
    """Bytes that a payload may have after it was edited."""
    examination: Examination | None
    """None where the settings are not known: a console that is mounted elsewhere."""
    destinations: Collection[str]
    """Those that the settings name."""
    retention: float | None
    """Seconds that receipts of the inbox are kept; None: for ever, or nobody knows."""
    closing: bool = field(default=False, init=False)
    """The server stops: live connections end by themselves."""

    @cached_property
    def logouts(self) -> Logouts:
        return Logouts(self.store, life=self.session, read_only=self.read_only)

    @cached_property
    def lookout(self) -> Lookout:
        return Lookout(self.store, allowed=self.slo)

    @cached_property
    def templates(self) -> Environment:
        made = Environment(
            loader=PackageLoader("pillarbox.ops.console"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        cast("dict[str, Any]", made.globals)["release"] = version("pillarbox")
        names = (
            "ago",
            "at_most",
            "clean",
            "commands",
            "due",
            "iso",
            "number",
            "plural",
            "rate",
            "span",
            "tail",
        )
        filters: dict[str, Any] = {name: getattr(words, name) for name in names} | {
            "latency": format_latency,
            "masked": self.masks.text,
            "limit": rate_text,
            "size": format_bytes,
        }
        made.filters.update(filters)
        return made
