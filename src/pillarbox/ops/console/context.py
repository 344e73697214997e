"""The context that all pages share: store, login, masking rules, templates."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from typing import Any, cast

from jinja2 import Environment, PackageLoader, StrictUndefined

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.states import StateCounts
from pillarbox.ops.console import formatting
from pillarbox.ops.console.doctor_report import DoctorReportCache
from pillarbox.ops.console.logins import Login
from pillarbox.ops.console.logouts import Logouts
from pillarbox.ops.console.masking import Masks
from pillarbox.ops.console.sessions import Signer
from pillarbox.ops.console.statistics import SharedRead
from pillarbox.ops.formatting import format_bytes, format_latency
from pillarbox.ops.health import HealthSnapshot, take_snapshot
from pillarbox.relay.routing import Route, rate_text


@dataclass(kw_only=True)
class ConsoleContext:
    """The context of one console."""

    store: AdminStore
    login: Login
    signer: Signer
    masks: Masks
    slo: float
    """Seconds that an event may be pending before the oldest age turns red."""
    session: float
    """Seconds that a login lasts."""
    read_only: bool
    title: str
    outbox: str
    """The label `outbox` of the metrics."""
    max_payload: int
    """Maximum number of bytes of an edited payload."""
    doctor: DoctorReportCache | None
    """None without settings: a console that is mounted in an application."""
    destinations: Collection[str]
    """Destinations of the settings."""
    routes: Sequence[Route]
    """Routes of the settings."""
    retention: float | None
    """Seconds that inbox records are kept; None: forever, or unknown."""
    closing: bool = field(default=False, init=False)
    """The server stops: live connections end."""

    @cached_property
    def logouts(self) -> Logouts:
        return Logouts(self.store, life=self.session, read_only=self.read_only)

    @cached_property
    def overview(self) -> SharedRead[HealthSnapshot]:
        return SharedRead(lambda: take_snapshot(self.store, allowed=self.slo))

    @cached_property
    def states(self) -> SharedRead[StateCounts]:
        return SharedRead(lambda: self.store.admin.inspection.states())

    def known_destinations(self, shown: Iterable[str]) -> list[str]:
        """Return the names of the settings, of the shown page and of the last overview; sends no statement."""
        last = self.overview.last
        reported = [] if last is None else [one.name for one in last.destinations]
        return sorted({*self.destinations, *shown, *reported} - {""})

    def forget(self) -> None:
        """Drop what is cached of the store, after a change."""
        self.overview.forget()
        self.states.forget()

    @cached_property
    def templates(self) -> Environment:
        environment = Environment(
            loader=PackageLoader("pillarbox.ops.console"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        cast("dict[str, Any]", environment.globals)["release"] = version("pillarbox")
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
        filters: dict[str, Any] = {name: getattr(formatting, name) for name in names} | {
            "latency": format_latency,
            "masked": self.masks.text,
            "limit": rate_text,
            "size": format_bytes,
        }
        environment.filters.update(filters)
        return environment
