"""Names of tables are plain identifiers, always quoted, and never longer than a database allows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.core.errors import ConfigurationError
from pillarbox.statements import LONGEST_IDENTIFIER, LONGEST_SUFFIX, Names, StatementSet


@pytest.mark.parametrize("prefix", ["outbox_", "_", "A", "shop_outbox_", "x" * (LONGEST_IDENTIFIER - LONGEST_SUFFIX)])
def test_a_plain_prefix_is_accepted(prefix: str) -> None:
    assert Names(prefix=prefix).prefix == prefix


@pytest.mark.parametrize(
    "name", ["", "1st", "a-b", "a b", 'a"b', "a'b", "a;b", "a.b", "naïve", "a\n", "a\x00", "{message}", "a%s"]
)
def test_any_other_prefix_is_rejected_and_named(name: str) -> None:
    with pytest.raises(ConfigurationError, match="prefix"):
        Names(prefix=name)
    with pytest.raises(ConfigurationError, match="schema"):
        Names(schema=name)


def test_a_prefix_leaves_room_for_derived_names() -> None:
    with pytest.raises(ConfigurationError, match="too long"):
        Names(prefix="x" * (LONGEST_IDENTIFIER - LONGEST_SUFFIX + 1))


def test_a_schema_is_at_most_63_characters() -> None:
    Names(schema="s" * 63)
    with pytest.raises(ConfigurationError, match="too long"):
        Names(schema="s" * 64)


@given(st.text())
def test_accepted_names_need_no_escaping(name: str) -> None:
    try:
        names = Names(prefix=name)
    except ConfigurationError:
        return
    assert names.qualified(name).strip('"') == name
    assert name.isascii()
    assert name.isidentifier()


def test_names_are_quoted_and_qualified() -> None:
    assert Names().qualified("thing") == '"thing"'
    assert Names(schema="shop").qualified("thing") == '"shop"."thing"'


def test_placeholders_become_names() -> None:
    names = Names(prefix="my_outbox_", schema="shop")
    sql = "SELECT {message}, {inbox}, {prefix}idx, {stem}x"
    assert (
        StatementSet(names).render(sql)
        == 'SELECT "shop"."my_outbox_message", "shop"."my_outbox_inbox", my_outbox_idx, my_x'
    )


def test_other_braces_stay_unchanged() -> None:
    sql = "SELECT '{}'::jsonb, '{\"a\": 1}', {unknown}"
    assert StatementSet(Names()).render(sql) == sql


def test_extra_placeholders_take_precedence() -> None:
    assert StatementSet(Names()).render("{message} {fence}", message="m", fence="f") == "m f"


def test_filled_in_text_is_not_expanded_again() -> None:
    assert StatementSet(Names()).render("{fence}", fence="{message}") == "{message}"


def test_each_outbox_of_a_database_has_its_own_wakeup_channel() -> None:
    assert Names(prefix="a_").channel != Names(prefix="b_").channel
    assert len(Names(prefix="x" * (LONGEST_IDENTIFIER - LONGEST_SUFFIX)).channel) <= LONGEST_IDENTIFIER
