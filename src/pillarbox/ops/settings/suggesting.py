"""The nearest setting to an unknown name, also by the names that other outboxes give it."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from pillarbox.ops.settings.origin import Path, dotted
from pillarbox.ops.settings.tables import every_key, keys_of, parts_of


def nearest_key(root: type[Any], path: Path, section: type[Any] | None = None) -> str:
    """For a name in a file or a flag; `section` is where it was written."""
    *place, name = path
    here = [] if section is None else [*keys_of(section), *parts_of(section)]
    if near := get_close_matches(_plain(name), here, n=1):
        return f"; did you mean {dotted((*place, near[0]))}?"
    everywhere = {dotted(known): key for known, key in every_key(root)}
    if meant := _by_last_name(name, everywhere) or _by_former_name(name, everywhere):
        return f"; did you mean {meant}?"
    if section is not None:
        return f"; there are {', '.join(here)}"
    return f"; did you mean {get_close_matches(dotted(path), list(everywhere), n=1, cutoff=0.0)[0]}?"


def nearest_variable(root: type[Any], variable: str, path: Path) -> str:
    """For a variable; there is always a nearest one."""
    name = path[1] if len(path) > 2 else "NAME"
    known = ["PILLARBOX_STORE", "PILLARBOX_TRANSPORT", "PILLARBOX_CONFIG"]
    for place, _ in every_key(root):
        if not any(part.endswith("[]") for part in place):
            known.append("PILLARBOX_" + "__".join(name.upper() if part == "*" else part.upper() for part in place))
    return f"; did you mean {get_close_matches(variable, known, n=1, cutoff=0.0)[0]}?"


def _by_last_name(name: str, everywhere: dict[str, Any]) -> str | None:
    return next((key for key in everywhere if key.rpartition(".")[2] == _plain(name)), None)


def _by_former_name(name: str, everywhere: dict[str, Any]) -> str | None:
    for key, about in everywhere.items():
        for former in about.formerly:
            if _plain(name) in (_plain(former), _plain(former.rpartition(".")[2])):
                return key
    return None


def _plain(name: str) -> str:
    return name.lower().replace("-", "_").replace(".", "_")
