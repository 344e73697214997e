"""Draw tables that fit a terminal: the least important columns are left out first, then rows, with a note."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rich.console import RenderableType

FRAME = 4
"""Lines of a table in addition to its rows."""
_GAP = 3
"""Cells between two columns."""
_EDGES = 2
_LEAST = 16
"""Cells below which the column that may be cut off is left out."""


class Sheet(NamedTuple):
    """A table to draw."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    names: Sequence[str] = ()
    """Columns that begin at the left."""
    spare: Sequence[str] = ()
    """Columns that may be left out, the first to go first."""
    cut: str = ""
    """The last column, if it may be cut off."""


def shares(lines: int, *sheets: Sheet) -> list[int]:
    """Divide the lines fairly among the tables; lines that one does not need go to the others."""
    room = max(0, lines - FRAME * sum(1 for sheet in sheets if sheet.rows))
    given = [0] * len(sheets)
    for number, at in enumerate(sorted(range(len(sheets)), key=lambda at: len(sheets[at].rows))):
        given[at] = min(len(sheets[at].rows), (room - sum(given)) // (len(sheets) - number))
    return given


def drawn(sheet: Sheet, *, width: int, most: int | None = None) -> list[RenderableType]:
    """Draw a table with at most `most` lines besides its frame; the last line counts the rows that are not shown."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    rows = sheet.rows if most is None or len(sheet.rows) <= most else sheet.rows[: max(0, most - 1)]
    kept, last = _fitting(sheet, width)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for at in kept:
        table.add_column(
            sheet.columns[at], justify="left" if sheet.columns[at] in sheet.names else "right", no_wrap=True
        )
    if last:
        table.add_column(sheet.cut, no_wrap=True, max_width=last)
    for row in rows:
        table.add_row(*(Text(row[at]) for at in kept), *([Text(row[-1], overflow="ellipsis")] if last else []))
    left = len(sheet.rows) - len(rows)
    return [table, *([Text(f"and {left} more")] if left else [])]


def _fitting(sheet: Sheet, width: int) -> tuple[list[int], int]:
    """Return the columns that fit, and the width of the last one; 0: it is not shown."""
    from rich.cells import cell_len

    widths = [max(map(cell_len, (name, *(row[at] for row in sheet.rows)))) for at, name in enumerate(sheet.columns)]
    kept = [at for at, name in enumerate(sheet.columns) if name != sheet.cut]

    def taken() -> int:
        return sum(widths[at] for at in kept) + _GAP * (len(kept) - 1) + _EDGES

    for name in sheet.spare:
        if taken() > width:
            kept.remove(sheet.columns.index(name))
    room = min(width - taken() - _GAP, widths[-1]) if sheet.cut else 0
    return kept, room if room >= min(_LEAST, widths[-1]) else 0
