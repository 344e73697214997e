"""What parses text from outside accepts it or raises ConfigurationError, and never shows a password of a URL."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pillarbox.admin.listing import Position
from pillarbox.core.errors import ConfigurationError
from pillarbox.ops.console.access import parse_rights
from pillarbox.ops.console.filters import dead_letter_filter, event_filter, group_of, moment, whole
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
