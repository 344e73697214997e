"""Settings are defined on fields: a kind rejects invalid values, and errors use the names of the source."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

import pytest

from pillarbox.core.clock import Duration
from pillarbox.core.errors import ConfigurationError
from pillarbox.settings import (
    ByteSize,
    Choice,
    Flag,
    InvalidSettingError,
    Kind,
    Number,
    Span,
    Text,
    Whole,
    about,
    check_settings,
    documented,
    setting,
    settings_of,
)

Colour = Literal["red", "green"]


@documented
@dataclass(frozen=True, kw_only=True)
class Shop:
    """A shop."""

    name: str = field(metadata=about(Text(), "What it is called."))
    size: int = setting(3, Whole("rooms"), "How large it is.")
    limit: int = setting(10, Whole("guests", zero="no limit"), "How many may enter.")
    pause: Duration = setting("1s", Span(("never",), zero="none"), "How long it closes.")
    token: str | None = setting(None, Text(), "What opens it.", secret=True)

    def __post_init__(self) -> None:
        check_settings(self)
        if self.size > self.limit > 0:
            raise InvalidSettingError(self, "{limit} is {limit.value}: at least {size} ({size.value}) {why}", why="{}")


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        (Text(), ["", "a"], [1, None]),
        (Choice.of(Colour), ["red", "green"], ["blue", "", None, 1, ["red"]]),
        (Flag(), [True, False], ["true", 1, None]),
        (Whole(), [1, 2**63 - 1], [0, -1, 1.5, True, "1", None, 2**63]),
        (Whole(zero="no limit"), [0, 1], [-1, False]),
        (Number(1), [1, 1.5], [0.5, float("nan"), float("inf"), 10**400, True, "2"]),
        (Span(), ["1s", 0.5, timedelta(days=1)], [0, "0s", -1, 10**400, "soon", None, True]),
        (Span(zero="at once"), [0, "0s", "1h"], [-1, float("inf")]),
        (Span(("forever",)), ["forever", "7 days"], ["for ever", "off"]),
        (Span(minimum="10ms", maximum="1h"), ["10ms", "1h", 60], ["9ms", "61m", 0]),
        (ByteSize(), [1, "1 GiB"], [0, -1, "", "big", "9" * 5000, None, 1.5]),
        (ByteSize("1 MiB"), ["1 MiB", 1024], ["2 MiB"]),
    ],
)
def test_a_kind_accepts_valid_values_only(kind: Kind, right: list[Any], wrong: list[Any]) -> None:
    for value in right:
        kind.check(value)
    for value in wrong:
        with pytest.raises(ValueError, match="write "):
            kind.check(value)


def test_a_file_needs_the_unit_of_a_duration() -> None:
    with pytest.raises(ValueError, match="a number has no unit; write for example 5ms, 5s or 5h"):
        Span().read(5)
    assert Span().read("5s") == "5s"


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [(Flag(), "yes", True), (Flag(), "OFF", False), (Whole(), "12", 12), (Number(1), "1.5", 1.5), (Span(), "2s", "2s")],
)
def test_text_of_a_variable_becomes_the_value_of_a_file(kind: Kind, text: str, value: object) -> None:
    assert kind.read(kind.parse(text)) == value


@pytest.mark.parametrize("kind", [Flag(), Whole(), Number(1), Span()])
def test_invalid_text_of_a_variable_is_rejected(kind: Kind) -> None:
    with pytest.raises(ValueError, match="write "):
        kind.read(kind.parse("perhaps"))


def test_a_definition_has_default_unit_and_meaning_of_zero() -> None:
    name, size, limit, pause, _ = settings_of(Shop)
    assert (name.required, size.required) == (True, False)
    assert (size.default, size.kind.word, size.means) == (3, "rooms, 1 or more", "How large it is.")
    assert (limit.kind.word, limit.means) == ("guests, 0 or more", "How many may enter. `0`: no limit.")
    assert (pause.kind.word, pause.means) == ("duration, `never`", "How long it closes. `0s`: none.")


def test_the_docstring_has_every_setting() -> None:
    assert "limit: How many may enter. `0`: no limit. (guests, 0 or more; default 10)" in str(Shop.__doc__)


def test_an_invalid_value_is_named_with_its_class() -> None:
    with pytest.raises(ConfigurationError) as raised:
        Shop(name="a", size=0)
    assert str(raised.value) == "Shop.size is 0: write an integer, 1 or more"


def test_a_secret_is_neither_quoted_nor_shown() -> None:
    with pytest.raises(ConfigurationError) as raised:
        Shop(name="a", token=b"canary")  # type: ignore[arg-type]
    assert str(raised.value) == "Shop.token: write text in quotes"
    assert "canary" not in repr(Shop(name="a", token="canary"))


def test_a_relation_uses_the_names_of_the_source() -> None:
    with pytest.raises(InvalidSettingError) as raised:
        Shop(name="a", size=20)
    assert str(raised.value) == "Shop.limit is 10: at least Shop.size (20) {}"
    known = {"limit": "SHOP_LIMIT", "size": "shop.size in a.toml"}
    assert raised.value.called(lambda name: known.get(name, name)) == (
        "SHOP_LIMIT is 10: at least shop.size in a.toml (20) {}"
    )
