"""How the library defines its settings: `definitions` on the fields of dataclasses, and the `kinds` of their values.

Of `core` this package needs errors, durations and sizes only. `pillarbox.ops.settings` reads values into the classes.
"""

from pillarbox.settings.definitions import (
    InvalidSettingError,
    Setting,
    about,
    check_settings,
    documented,
    listed,
    maybe,
    part,
    python_name,
    setting,
    settings_of,
)
from pillarbox.settings.kinds import (
    ByteSize,
    Choice,
    Flag,
    FlagOr,
    Identifier,
    Kind,
    Number,
    Pairs,
    Span,
    Text,
    Texts,
    Whole,
)

__all__ = [
    "ByteSize",
    "Choice",
    "Flag",
    "FlagOr",
    "Identifier",
    "InvalidSettingError",
    "Kind",
    "Number",
    "Pairs",
    "Setting",
    "Span",
    "Text",
    "Texts",
    "Whole",
    "about",
    "check_settings",
    "documented",
    "listed",
    "maybe",
    "part",
    "python_name",
    "setting",
    "settings_of",
]
