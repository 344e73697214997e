"""SQL lives in named files beside the code that runs it; each begins with a sentence of purpose."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from pillarbox.core.names import Names


@cache
def text(package: str, name: str) -> str:
    """The file `sql/<name>.sql` of a package, as it is written."""
    return (files(package) / "sql" / f"{name}.sql").read_text(encoding="utf-8")


def statement(package: str, name: str, names: Names, **extra: str) -> str:
    """A statement ready to be sent: names filled in, the purpose left out (drivers look at the first word)."""
    lines = text(package, name).splitlines()
    while lines and (lines[0].startswith("--") or not lines[0].strip()):
        lines.pop(0)
    return names.render("\n".join(lines), **extra).strip().removesuffix(";")
