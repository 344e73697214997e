"""The wake-up channel: one per schema and prefix, always short enough for PostgreSQL."""

from hypothesis import given
from hypothesis import strategies as st

from pillarbox.statements import LONGEST_IDENTIFIER, Names

identifiers = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,62}", fullmatch=True)
prefixes = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,30}", fullmatch=True)


def test_the_channel_contains_schema_and_prefix() -> None:
    assert Names(schema="public").channel == "public.outbox_wakeup"
    assert Names().channel == "outbox_wakeup"


@given(schema=identifiers, prefix=prefixes)
def test_a_channel_is_never_too_long(schema: str, prefix: str) -> None:
    assert len(Names(schema=schema, prefix=prefix).channel.encode()) <= LONGEST_IDENTIFIER


@given(
    one=st.tuples(identifiers, prefixes),
    other=st.tuples(identifiers, prefixes),
)
def test_two_outboxes_never_share_a_channel(one: tuple[str, str], other: tuple[str, str]) -> None:
    channels = {Names(schema=schema, prefix=prefix).channel for schema, prefix in (one, other)}
    assert len(channels) == len({one, other})


def test_long_schemas_that_differ_at_the_end_have_different_channels() -> None:
    stem = "s" * 62
    assert Names(schema=f"{stem}a").channel != Names(schema=f"{stem}b").channel
