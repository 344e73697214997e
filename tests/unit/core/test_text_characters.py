"""Control characters are escaped in every form of output."""

import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.core.text import UNSAFE, escape_json, escaped, safe_json
from pillarbox.telemetry.log_lines import FORMAT, LineFormatter

OBEYED = "\x00\x07\x1b\x7f\x80\x85\x9b\x9f\u061c\u200b\u200d\u200e\u2028\u202e\u2060\u2066\ufeff\U000e0041"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(JSON)
def test_escaped_json_has_the_same_meaning(value: object) -> None:
    written = safe_json(value)
    assert json.loads(written) == value
    assert not UNSAFE.search(written)
    assert json.loads(escape_json(json.dumps(value, ensure_ascii=False, indent=1))) == value


@pytest.mark.parametrize("character", OBEYED)
def test_each_control_character_is_escaped(character: str) -> None:
    assert character not in escaped(f"a{character}b")
    assert character not in safe_json({character: character})
    assert escaped(f"a{character}b").startswith("a\\")


def test_printable_text_stays_unchanged() -> None:
    text = "Grüße, 日本語, עברית, naïve 🙂"
    assert escaped(text) == text
    assert safe_json(text) == f'"{text}"'


def test_a_log_line_is_one_line_with_a_sortable_time() -> None:
    record = logging.LogRecord("pillarbox", logging.INFO, __file__, 1, "said %s", ("a\x1b[2J\n\x9b31m\u202e",), None)
    record.created = 0.0
    reported = LineFormatter(FORMAT).format(record)
    assert reported == "1970-01-01T00:00:00.000000Z INFO pillarbox: said a\\x1b[2J\\n\\x9b31m\\u202e"
