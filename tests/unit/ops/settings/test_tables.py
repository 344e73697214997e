"""Sections of the settings: classes of the library, written in one table, and shared by several kinds of transport."""

from dataclasses import dataclass, field

import pytest

from pillarbox.ops.settings.tables import every_key, inlined, inlined_of, keys_of, named, parts_of, same_as
from pillarbox.settings import Flag, Span, Text, Whole, listed, maybe, part, setting


@dataclass(frozen=True, kw_only=True)
class Subject:
    name: str = setting("", Text(), "The subject.")


@dataclass(frozen=True, kw_only=True)
class RabbitOptions:
    window: int = setting(1000, Whole("messages"), "Messages in flight.")
    declare: bool = setting(True, Flag(), "Declare it.")
    heartbeat: str = setting("30s", Span(zero="never"), "How soon.")
    subjects: tuple[Subject, ...] = listed(Subject)


@dataclass(frozen=True, kw_only=True)
class NatsOptions:
    window: int = setting(1000, Whole("messages"), "Messages in flight.")
    declare: bool = setting(True, Flag(), "Declare it.")
    stream: str | None = setting(None, Text(), "The stream.")


@dataclass(frozen=True, kw_only=True)
class Transports:
    url: str | None = setting(None, Text(), "The URL.")
    rabbitmq: RabbitOptions = inlined(RabbitOptions, only_for=("rabbitmq",))
    nats: NatsOptions = inlined(NatsOptions, only_for=("nats",))


def test_inlined_settings_are_keys_of_the_section_in_the_order_of_the_fields() -> None:
    assert list(keys_of(Transports)) == ["url", "window", "declare", "heartbeat", "stream"]
    assert inlined_of(Transports) == {"rabbitmq": RabbitOptions, "nats": NatsOptions}


def test_a_setting_of_one_kind_is_only_for_that_kind() -> None:
    keys = keys_of(Transports)
    assert (keys["heartbeat"].only_for, keys["heartbeat"].holders) == (("rabbitmq",), ("rabbitmq",))
    assert (keys["stream"].only_for, keys["stream"].holders) == (("nats",), ("nats",))
    assert (keys["url"].only_for, keys["url"].holders) == ((), ("",))


def test_a_setting_of_several_kinds_is_one_key_that_names_them_all() -> None:
    window = keys_of(Transports)["window"]
    assert (window.only_for, window.holders) == (("rabbitmq", "nats"), ("rabbitmq", "nats"))
    assert window.means == "Messages in flight. (rabbitmq, nats only)"


def test_a_section_of_an_inlined_class_is_only_for_its_kind() -> None:
    subjects = parts_of(Transports)["subjects"]
    assert (subjects.section, subjects.shape) == (Subject, "listed")
    assert (subjects.holder, subjects.only_for) == ("rabbitmq", ("rabbitmq",))


@dataclass(frozen=True, kw_only=True)
class OtherDefault:
    window: int = setting(500, Whole("messages"), "Messages in flight.")


@dataclass(frozen=True, kw_only=True)
class OtherHelp:
    window: int = setting(1000, Whole("messages"), "Something else.")


@dataclass(frozen=True, kw_only=True)
class OtherKind:
    window: int = setting(1000, Whole("messages", zero="no limit"), "Messages in flight.")


@dataclass(frozen=True, kw_only=True)
class OtherSecrecy:
    window: int = setting(1000, Whole("messages"), "Messages in flight.", secret=True)


@pytest.mark.parametrize("other", [OtherDefault, OtherHelp, OtherKind, OtherSecrecy])
def test_two_definitions_of_one_name_are_refused(other: type[object]) -> None:
    @dataclass(frozen=True, kw_only=True)
    class Section:
        rabbitmq: RabbitOptions = inlined(RabbitOptions, only_for=("rabbitmq",))
        other_kind: object = inlined(other, only_for=("other",))

    with pytest.raises(TypeError, match=r"rabbitmq\.window and other_kind\.window are defined differently"):
        keys_of(Section)


def test_a_setting_can_be_taken_over_from_another_class() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Section:
        window: int = same_as(RabbitOptions, "window", only_for=("envelope",))

    assert Section().window == 1000
    assert keys_of(Section)["window"].only_for == ("envelope",)
    assert keys_of(Section)["window"].kind == Whole("messages")


@dataclass(frozen=True, kw_only=True)
class Root:
    transports: dict[str, Transports] = named(Transports)
    subject: Subject = part(Subject)
    fallback: Subject | None = maybe(Subject)
    note: str = field(default="", metadata={})


def test_every_key_has_its_place() -> None:
    assert [".".join(path) for path, _ in every_key(Root)] == [
        "transports.*.url",
        "transports.*.window",
        "transports.*.declare",
        "transports.*.heartbeat",
        "transports.*.stream",
        "transports.*.subjects[].name",
        "subject.name",
        "fallback.name",
    ]
