"""What parses text from outside accepts it or raises ConfigurationError, and never shows a password of a URL."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pillarbox.admin.listing import Position
from pillarbox.core.clock import LONGEST, seconds
from pillarbox.core.errors import ConfigurationError
from pillarbox.core.payload import MAX_PAYLOAD_BYTES, payload_limit
from pillarbox.ops.console import json_text
from pillarbox.ops.console.access import parse_rights
from pillarbox.ops.console.filters import dead_letter_filter, event_filter, group_of, moment, whole
from pillarbox.ops.console.masking import Masks
from pillarbox.ops.console.users import parse as parse_users
from pillarbox.ops.settings import Settings
from pillarbox.ops.times import parse_time
from pillarbox.schemes import open_store
from pillarbox.transports.kafka.plugin import KafkaEndpoint, KafkaOptions
from pillarbox.transports.nats.plugin import NatsEndpoint
from pillarbox.transports.rabbitmq.plugin import BrokerEndpoint
from pillarbox.transports.redis.plugin import RedisEndpoint
from pillarbox.transports.webhook.plugin import HttpEndpoint

SECRET = "s3cret-canary"
PARTS = st.text("abz09@:/?#[]%&=,._-~+ \\\"'<>é\u202e\x00\n", max_size=25)
"""What URLs are made of, and what breaks them."""
QUERY = st.dictionaries(
    st.sampled_from(
        ["status", "type", "key", "destination", "aggregate", "since", "until", "error", "event", "id", "group", "view"]
    ),
    st.one_of(PARTS, st.text(max_size=30), st.sampled_from(["FAILED", "1h", "2026-11-30T09:00:00Z", "99999999999h"])),
)
ENDPOINTS: dict[str, Callable[[str], object]] = {
    "amqp": BrokerEndpoint.parse,
    "amqps": BrokerEndpoint.parse,
    "kafka": lambda url: KafkaEndpoint.parse(url, KafkaOptions()),
    "nats": NatsEndpoint.parse,
    "redis": RedisEndpoint.parse,
    "https": HttpEndpoint.parse,
    "postgresql": open_store,
    "mariadb": open_store,
}


@pytest.mark.parametrize("scheme", ENDPOINTS)
@given(host=PARTS, rest=PARTS)
@example(host="db:port", rest="")
@example(host="[::1", rest="/x")
def test_a_url_is_parsed_or_rejected_without_its_password(scheme: str, host: str, rest: str) -> None:
    try:
        shown = repr(ENDPOINTS[scheme](f"{scheme}://app:{SECRET}@{host}/{rest}"))
    except ConfigurationError as error:
        shown = str(error)
    assert SECRET not in shown


SETTINGS = (
    "STORE",
    "STORE__SCHEMA",
    "STORE__PREFIX",
    "STORE__STATEMENT_TIMEOUT",
    "TRANSPORT",
    "RECORD__MAX_PAYLOAD",
    "RECORD__WAKEUP",
    "RELAY__BATCH_SIZE",
    "RELAY__LEASE",
    "RELAY__MAX_IN_FLIGHT_BYTES",
    "RELAY__RETRY__MAX_ATTEMPTS",
    "RELAY__RETENTION__HISTORY",
    "LOGGING__LEVEL",
    "CONSOLE__MASK",
    "DESTINATIONS__BILLING__RATE_LIMIT",
)


@given(st.dictionaries(st.sampled_from(SETTINGS), st.one_of(PARTS, st.text(max_size=20)), min_size=1, max_size=4))
def test_a_setting_is_loaded_or_rejected(values: dict[str, str]) -> None:
    with suppress(ConfigurationError):
        Settings.load(None, {f"PILLARBOX_{name}": value for name, value in values.items()})


@given(st.one_of(st.text(max_size=60), st.text("0123456789-T:+Z.,%ab", max_size=40)))
@example("2026-11-30T09:00:00Z,1,%ff")
@example("0001-01-01T00:00:00+14:00,1,x")
@example("2026-11-30T09:00:00Z,1,\udcff")
def test_a_cursor_is_parsed_or_rejected(text: str) -> None:
    with suppress(ConfigurationError):
        assert Position.parse(str(Position.parse(text))) == Position.parse(text)


@given(st.datetimes(timezones=st.just(UTC)), st.integers(0, 2**63 - 1), st.text(st.characters(codec="utf-8")))
def test_a_cursor_survives_its_text(at: datetime, sequence: int, destination: str) -> None:
    position = Position(at, sequence, destination.replace("\x00", ""))
    assert Position.parse(str(position)) == position


@given(QUERY)
def test_query_parameters_are_read_or_rejected(query: dict[str, str]) -> None:
    for read in (event_filter, dead_letter_filter, group_of):
        with suppress(ConfigurationError):
            read(query)


@given(st.one_of(PARTS, st.text(max_size=30)))
@example("99999999999999999999h")
@example("²")
def test_numbers_times_and_users_are_read_or_rejected(text: str) -> None:
    for read in (parse_time, moment, parse_rights, lambda given: parse_users(given, called="the file")):
        with suppress(ConfigurationError):
            read(text)
    with suppress(ConfigurationError):
        assert 0 <= whole(text, "limit", default=10, most=100) <= 100


@given(
    st.one_of(st.text(max_size=30), st.integers(), st.floats(), st.from_regex(r"\d{1,30} ?[a-z]{0,5}", fullmatch=True))
)
@example(10**400)
@example(-(10**400))
@example("9" * 5000)
@example("9" * 5000 + "KiB")
def test_durations_and_sizes_are_read_or_rejected(value: str | float) -> None:
    with suppress(ConfigurationError):
        assert 0 <= seconds(value) <= LONGEST
    with suppress(ConfigurationError):
        assert 1 <= payload_limit(cast(str, value)) <= MAX_PAYLOAD_BYTES


PIECES = st.lists(
    st.sampled_from(["a", "\\d", ".", "[^ ]", "(", ")", "(?:", "(?=", "(?P<n>", "(?P=n)", "[", "]", "{", "}", "{2,3}"])
    | st.sampled_from(["*", "+", "++", "?", "|", "^", "$", "\\", "\\1", "{9999999999}", "(?i)", "(?>", "(?(1)"]),
    max_size=8,
).map("".join)
STEPS = st.lists(st.sampled_from([".a", "..b", "[*]", "[0]", ".*", "*", "[", " "]), max_size=4).map("".join)
RULES = st.one_of(
    PIECES.map("text:".__add__), STEPS.map("$".__add__), st.text(max_size=9), PARTS.map("header:".__add__)
)
DOCUMENTS = st.recursive(
    st.none() | st.integers() | st.text("a1 @b", max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(RULES, min_size=1, max_size=3), DOCUMENTS)
@example(["text:a{99999999999999999999}"], None)
@example(["text:" + "(" * 2000 + "a" + ")" * 2000], None)
@example(["text:" + "(?:" * 90 + "a" + ")" * 90], "a")
@pytest.mark.filterwarnings("ignore:Possible nested set:FutureWarning")
def test_a_masking_rule_is_compiled_or_rejected(rules: list[str], document: object) -> None:
    try:
        masks = Masks(rules)
    except ConfigurationError:
        return
    shown = json_text.text(masks.payload(json_text.parse(json.dumps(document).encode())))
    assert masks.payloads or json.loads(shown) == document
    assert set(masks.headers({"a": "a1"})) == {"a"}


@given(DOCUMENTS)
def test_nothing_of_a_masked_member_is_shown(document: object) -> None:
    canary = {"a": [{"secret": "canary", "b": document}], "secret": {"c": "canary"}, "b": "my canary1 sings"}
    shown = json_text.text(Masks(["$..secret", "text:canary\\d"]).payload(json_text.parse(json.dumps(canary).encode())))
    assert "canary" not in shown
