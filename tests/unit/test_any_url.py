"""Any text as a URL: an adapter, or an error that says what is wrong and shows no password."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pillarbox import ConfigurationError, open_source, open_store, open_transport
from pillarbox.schemes import own_schemes

PASSWORD = "canary-in-the-coal-mine"
TEXT = st.text(st.characters(), max_size=30)  # lone surrogates and all controls included
PARTS = st.sampled_from(
    ["", "@", "/", "?", "#", ":", "%", "%zz", "[", "]", "[::1]", "127.0.0.1", ":99999", ",", "\x00", "é"]
)
AUTHORITY = st.lists(PARTS | TEXT, max_size=6).map("".join)


SCHEMES = st.sampled_from([*sorted(set(own_schemes())), "postgresql+asyncpg", "", "no-such"])
URLS = (
    TEXT
    | st.builds("{}://app:{}@{}".format, SCHEMES, st.just(PASSWORD), AUTHORITY)
    | st.builds("{}://{}".format, SCHEMES, AUTHORITY)
)


def refused(error: ConfigurationError, url: str) -> None:
    assert str(error).strip()
    assert PASSWORD not in str(error), url


@given(URLS)
@example("postgresql://app:canary-in-the-coal-mine@[::1")
@example("mariadb://app:canary-in-the-coal-mine@db:99999/shop")
def test_any_text_opens_a_store_or_is_refused(url: str) -> None:
    try:
        store = open_store(url)
    except ConfigurationError as error:
        refused(error, url)
        return
    assert PASSWORD not in repr(store)


@given(URLS)
@example("amqp://app:canary-in-the-coal-mine@[::1")
@example("nats://app:canary-in-the-coal-mine@mq:99999")
def test_any_text_opens_a_transport_or_is_refused(url: str) -> None:
    async def opened() -> None:
        transport = open_transport(url)
        assert PASSWORD not in repr(transport)
        with suppress(ConfigurationError):
            await transport.aclose()

    try:
        asyncio.run(opened())
    except ConfigurationError as error:
        refused(error, url)


@given(URLS, TEXT)
@pytest.mark.filterwarnings("error")
def test_any_text_opens_a_source_or_is_refused(url: str, name: str) -> None:
    async def opened() -> None:
        source = open_source(url, name, group="billing")
        assert PASSWORD not in repr(source)

    try:
        asyncio.run(opened())
    except ConfigurationError as error:
        refused(error, url)


def opened(url: str) -> None:
    (open_store if url.startswith(("postgres", "maria")) else open_transport)(url)


@pytest.mark.parametrize(
    "url",
    [
        f"{scheme}://app:{PASSWORD}@h1{port},app:{PASSWORD}@h2{port}{tail}"
        for scheme, tail in {"amqp": "/", "kafka": "", "redis": "/0", "postgresql": "/shop", "mariadb": "/shop"}.items()
        for port in ("", ":1")
    ]
    + [f"nats://app:{PASSWORD}@h1,other:{PASSWORD}@h2"],
)
def test_a_user_for_each_server_is_refused(url: str) -> None:
    """All servers but the last would be read as a part of the password, and never be connected to."""
    with pytest.raises(ConfigurationError) as caught:
        opened(url)
    refused(caught.value, url)


@pytest.mark.parametrize(
    "url", [f"nats://app:{PASSWORD}@h1,", "nats://h1,,h2", "nats://,h1", "amqp://h1,,h2/", "kafka://h1,"]
)
def test_a_server_without_a_name_among_others_is_refused(url: str) -> None:
    """It would be localhost, which would get the password."""
    with pytest.raises(ConfigurationError) as caught:
        opened(url)
    refused(caught.value, url)


@pytest.mark.parametrize(
    "url",
    [
        "amqp://h:0/",
        "kafka://h:0",
        "nats://h:0",
        "redis://h:0/0",
        "https://h:0/",
        "postgresql://h:0/shop",
        "mariadb://h:0/shop",
    ],
)
def test_port_0_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="port"):
        opened(url)


DIGITS = "9" * 5000
"""More than Python converts to a number."""


@pytest.mark.parametrize("scheme", sorted(own_schemes()))
@pytest.mark.parametrize(
    "place", [f"h:{DIGITS}", f"h:{DIGITS}/0", f"h:1,h:{DIGITS}/0", f"h/{DIGITS}", f"h/0?port={DIGITS}"]
)
def test_a_number_with_too_many_digits_is_refused(scheme: str, place: str) -> None:
    for what in (open_store, open_transport):
        with suppress(ConfigurationError):
            repr(what(f"{scheme}://{place}"))


@pytest.mark.parametrize("url", ["mariadb://h/shop#1", "mariadb://h1,h2/shop", "redis://h1,h2/0", "kafka://h 1:9092"])
def test_what_a_url_cannot_have_is_refused_and_not_ignored(url: str) -> None:
    with pytest.raises(ConfigurationError, match="URL"):
        opened(url)
