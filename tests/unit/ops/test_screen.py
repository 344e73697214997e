"""Tables that fit the screen."""

import io

import pytest
from rich.console import Console, Group

from pillarbox.ops.cli.screen import FRAME, Sheet, drawn, shares

ERROR = "the mail server closed the line before STARTTLS"
WIDE = Sheet(
    ["destination", "state", "sent/s", "retried/s", "dead/s", "last error"],
    [["orders", "closed", "1,234.5", "0.0", "0.0", ""], ["mail", "half-open", "0.0", "12.5", "0.1", ERROR]],
    names=["destination"],
    spare=["dead/s", "retried/s"],
    cut="last error",
)
NARROW = Sheet(["relay", "lanes"], [[f"relay-{number}", "4"] for number in range(9)], names=["relay"])


def lines(sheet: Sheet, *, width: int, most: int | None = None) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    console.print(Group(*drawn(sheet, width=width, most=most)))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


@pytest.mark.parametrize("width", range(36, 140, 4))
def test_only_the_last_column_is_truncated(width: int) -> None:
    shown = lines(WIDE, width=width)
    assert len(shown) == FRAME + len(WIDE.rows)
    text = "\n".join(shown).replace(ERROR, "")
    for word in ("orders", "closed", "mail", "half-open", "1,234.5"):
        assert word in text
    assert text.count("…") <= 1
    assert max(map(len, shown)) <= width


def test_columns_are_dropped_in_order() -> None:
    assert lines(WIDE, width=140)[1].split() == [*WIDE.columns[:5], "last", "error"]
    assert lines(WIDE, width=60)[1].split() == WIDE.columns[:5]
    assert lines(WIDE, width=48)[1].split() == ["destination", "state", "sent/s", "retried/s"]
    assert lines(WIDE, width=36)[1].split() == ["destination", "state", "sent/s"]


def test_the_last_column_uses_the_remaining_width() -> None:
    assert lines(WIDE, width=90)[-2].endswith("…")
    assert ERROR in lines(WIDE, width=140)[-2]


@pytest.mark.parametrize("height", range(12, 30))
def test_both_tables_fit_and_count_omitted_rows(height: int) -> None:
    given = shares(height, WIDE, NARROW)
    shown = [lines(sheet, width=140, most=most) for sheet, most in zip((WIDE, NARROW), given, strict=True)]
    assert sum(map(len, shown)) <= height
    assert "relay-0" in "\n".join(shown[1])
    reported = [line for line in shown[1] if line.startswith("and ")]
    assert reported == ([] if given[1] == 9 else [f"and {9 - given[1] + 1} more"])


def test_unused_rows_of_one_table_go_to_the_other() -> None:
    assert shares(2 * FRAME + 11, WIDE, NARROW) == [2, 9]
    assert shares(2 * FRAME + 8, WIDE, NARROW) == [2, 6]
    assert shares(2 * FRAME + 3, WIDE, NARROW) == [1, 2]
    assert shares(FRAME + 20, WIDE) == [2]
