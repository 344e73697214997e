"""The settings of recording: each field defines name, unit, default, bounds and help of one argument of `Outbox`.

`[record]` of a settings file has the same names, and is read into this class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from pillarbox.core.payload import Size
from pillarbox.settings import Choice, Flag, check_settings, setting
from pillarbox.settings.shared import WakeupMode, max_payload_setting, wakeup_setting

Duplicate = Literal["error", "ignore"]


@dataclass(frozen=True, kw_only=True)
class RecordOptions:
    """How `Outbox` and `pillarbox record` record events."""

    python_name: ClassVar[str] = "Outbox"

    max_payload: Size = max_payload_setting()
    duplicate: Duplicate = setting(
        "error",
        Choice.of(Duplicate),
        "What happens to an event whose id is already pending: `error` raises, `ignore` leaves it out.",
    )
    wakeup: WakeupMode = wakeup_setting(
        "`notify`: a commit wakes an idle relay. `none`: it does not, as two-phase commit requires; the relay polls."
    )
    strict_order: bool = setting(
        False,
        Flag(),
        "Writers of one ordering key wait for each other until they commit, so that events of the key are sent in the "
        "order of the commits (PostgreSQL, MariaDB; SQLite has one writer).",
    )

    def __post_init__(self) -> None:
        check_settings(self)
