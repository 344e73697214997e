"""The settings of recording: each field defines name, unit, default, bounds and help of one argument of `Outbox`.

`[record]` of a settings file has the same names, and is read into this class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from pillarbox.core.text import Size
from pillarbox.settings import Choice, check_settings, setting
from pillarbox.settings.shared import Wakeup, max_payload_setting, wakeup_setting

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
    wakeup: Wakeup = wakeup_setting()

    def __post_init__(self) -> None:
        check_settings(self)
