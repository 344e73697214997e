"""What the statement keeps to, so that it can be rendered for any driver."""

import re

from pillarbox.core.names import Names
from pillarbox.core.sqlfiles import statement, text


def test_it_begins_with_a_sentence_of_purpose() -> None:
    assert re.match(r"-- [A-Z].*\.", text("pillarbox.inbox", "admit"))


def test_its_placeholders_are_used_once_and_in_order() -> None:
    assert re.findall(r"\$\d+", text("pillarbox.inbox", "admit")) == ["$1", "$2"]


def test_sqlite_would_not_begin_for_anything_but_an_insert() -> None:
    assert statement("pillarbox.inbox", "admit", Names()).startswith("INSERT")
