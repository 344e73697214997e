"""The tables of the reference page of settings, made from the definitions of the settings.

`python -m tests.docs.settings_page` writes them into the page.
"""

from __future__ import annotations

import json
from itertools import groupby

from pillarbox.ops.settings import Settings
from pillarbox.ops.settings.tables import every_key, inlined_of, keys_of, parts_of
from pillarbox.relay.config import PRESETS
from pillarbox.settings import Setting, python_name
from tests.docs.pages import ROOT

PAGE = ROOT / "docs/reference/settings.md"
KEYS = list(every_key(Settings))

Path = tuple[str, ...]


def written(page: str) -> str:
    """The page with the tables as they are now."""
    for name, text in (("settings", settings()), ("presets", presets()), ("former names", former_names())):
        begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
        before, _, rest = page.partition(begin)
        _, _, after = rest.partition(end)
        page = f"{before}{begin}{text}{end}{after}"
    return page


def settings() -> str:
    """A heading, a sentence and a table for each section."""
    parts: list[str] = []
    for table, keys in groupby(KEYS, key=lambda one: one[0][:-1]):
        rows = [f"| `{key.name}` | {key.kind.word} | {_default(key)} | {key.means} |" for _, key in keys]
        parts.append(f"### {_heading(table)}\n\n{_about(table)}\n\n" + _table("key | value | default | meaning", rows))
    return "\n" + "\n".join(parts) + "\n"


def presets() -> str:
    """A column for each setting of a preset."""
    rows = [
        f"| `{name}` | `{one.config.poll_interval}` | `{one.config.batch_size}` | `{one.retry.max_attempts}` | "
        f"`{one.retry.max_delay}` |"
        for name, one in PRESETS.items()
    ]
    keys = ("poll_interval", "batch_size", "retry.max_attempts", "retry.max_delay")
    return _table(" | ".join(["", *(f"`{key}`" for key in keys)]), rows)


def former_names() -> str:
    """What other outboxes call our settings."""
    rows = (
        f"| `{former}` | `{'.'.join(path).replace('*', 'NAME')}` | {note} |".replace("|  |", "| |")
        for path, key in KEYS
        for former, note in key.formerly.items()
    )
    return _table("there | here | difference", sorted(rows))


def _table(head: str, rows: list[str]) -> str:
    return "\n".join([f"| {head} |", "|" + "---|" * len(head.split(" | ")), *rows]) + "\n"


def _heading(table: Path) -> str:
    name = ".".join(table).replace("*", "NAME")
    if name.endswith(("bindings[]", "dead_letter")):
        return f"`{name.rpartition('.')[2].removesuffix('[]')}` of a queue"
    return f"`[[{name.removesuffix('[]').replace('[]', '')}]]`" if name.endswith("[]") else f"`[{name}]`"


def _about(table: Path) -> str:
    section = _section(table)
    first, *_ = (section.__doc__ or "").split("\n\n")
    name = _python_names(section)
    return " ".join([*first.split(), *([f"In Python: {name}."] if name else [])])


def _python_names(section: type) -> str:
    """What a section is in Python; '' if it is no class of the library."""
    if _is_of_library(section):
        return f"`{python_name(section)}`"
    match list(inlined_of(section).items()):
        case []:
            return ""
        case [(_, only)]:
            others = ", ".join(f"`{name}`" for name, key in keys_of(section).items() if key.holders == ("",))
            return f"`{python_name(only)}`, which does not have {others}"
        case several:
            return ", ".join(f"`{python_name(one)}` ({kind})" for kind, one in several)


def _section(table: Path) -> type:
    section: type = Settings
    for name in table:
        if name != "*":
            section = parts_of(section)[name.removesuffix("[]")].section
    return section


def _is_of_library(section: type) -> bool:
    return not section.__module__.startswith("pillarbox.ops")


def _default(key: Setting) -> str:
    if key.required:
        return "required"
    return "" if key.default in (None, {}) else f"`{_value(key.default)}`"


def _value(value: object) -> str:
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
