"""Any content of a file, of variables and of flags: settings, or errors that show no password of a URL."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pillarbox import ConfigurationError
from pillarbox.ops.settings import Settings

PASSWORD = "canary-in-the-coal-mine"
TEXT = st.text(st.characters(), max_size=20)  # lone surrogates and all controls included
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | TEXT
    | st.sampled_from(["10s", "-1s", "1e309s", "5MiB", "0", "nan", "amqp://mq/", "memory://", "127.0.0.1:0"])
    | st.sampled_from([10**400, -(10**400), 2**63, "9" * 400, "9" * 5000])
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=6
)
NAMES = sorted({entry.name for entry in Settings.load(None, {}).entries})
SECTIONS = sorted({name.partition(".")[0] for name in NAMES} | {"transports", "destinations", "routes"})
URLS = st.builds(
    "{}://app:{}@{}".format,
    st.sampled_from(["postgresql", "mariadb", "sqlite", "amqp", "nats", "kafka", "redis", "https", "celery", ""]),
    st.just(PASSWORD),
    st.sampled_from(["", "[", "[::1", "mq:99999", "mq:x", "mq/%zz", "mq,", "mq?x=1#y"]) | TEXT,
)


def placed(name: str, value: Any) -> Mapping[str, Any]:
    """The table of a file with one value at a dotted name."""
    for part in reversed(name.split(".")):
        value = {part: value}
    table: Mapping[str, Any] = value
    return table


TABLES = st.builds(placed, st.sampled_from(NAMES), VALUES) | st.dictionaries(
    st.sampled_from(SECTIONS) | TEXT, VALUES | st.dictionaries(TEXT, VALUES, max_size=3), max_size=3
)
VARIABLES = st.dictionaries(
    st.sampled_from([f"PILLARBOX_{name.upper().replace('.', '__')}" for name in NAMES])
    | TEXT.map("PILLARBOX_".__add__),
    TEXT | st.sampled_from(["10s", "-1", "nan", "[]", "{", "9" * 400, "9" * 5000]),
    max_size=3,
)
FLAGS = st.dictionaries(st.sampled_from(NAMES) | TEXT, TEXT, max_size=3)


def outcome(written: Mapping[str, Any], variables: Mapping[str, str], flags: Mapping[str, str]) -> str:
    """What the settings show of themselves, or the error."""
    try:
        settings = Settings.of(written, "pillarbox.toml", variables, flags)
    except ConfigurationError as error:
        return str(error)
    return "\n".join(f"{entry.name} = {entry.shown}" for entry in settings.entries)


@given(TABLES, VARIABLES, FLAGS)
def test_any_input_is_settings_or_an_error(
    written: Mapping[str, Any], variables: Mapping[str, str], flags: Mapping[str, str]
) -> None:
    assert outcome(written, variables, flags).strip()


@pytest.mark.parametrize("name", ["store.url", "transports.mq.url"])
@given(URLS)
def test_no_url_shows_its_password(name: str, url: str) -> None:
    assert PASSWORD not in outcome(placed(name, url), {}, {})
    variable = f"PILLARBOX_{name.upper().replace('.', '__')}"
    assert PASSWORD not in outcome({}, {variable: url}, {})


@pytest.mark.parametrize("number", ["9" * 400, "1" + "0" * 400, "9" * 5000])
@pytest.mark.parametrize("name", NAMES)
def test_no_setting_takes_a_number_beyond_all_bounds(name: str, number: str) -> None:
    variable = f"PILLARBOX_{name.upper().replace('.', '__')}"
    assert outcome({}, {variable: number}, {}).strip()
    if len(number) < 4300:
        assert outcome(placed(name, int(number)), {}, {}).strip()


@given(st.binary(max_size=60) | TEXT.map(lambda text: text.encode("utf-8", "surrogatepass")))
@example(b"relay.batch_size = " + b"9" * 5000)
@example(b"console.mask = " + b"[" * 5000 + b"]" * 5000)
def test_any_file_is_settings_or_an_error_that_names_it(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    file: Path = tmp_path_factory.getbasetemp() / "any.toml"
    file.write_bytes(content)
    shown = ""
    try:
        Settings.load(file, {})
    except ConfigurationError as error:
        shown = str(error)
    assert not shown or "any.toml" in shown
