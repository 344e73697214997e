"""The reference of settings is generated from their definitions: every key with kind, default and meaning."""

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pillarbox import Destination, Outbox
from pillarbox.ops.settings.sections import RecordSettings, StoreSettings
from pillarbox.ops.settings.tables import keys_of
from pillarbox.ops.settings.transports import (
    DestinationSettings,
    TransportSettings,
)
from pillarbox.relay.config import PRESETS
from pillarbox.settings import Setting
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.transports.rabbitmq import RabbitMQTransport
from tests.docs.pages import ROOT, blocks
from tests.docs.settings_page import KEYS, PAGE, written
from tests.unit.ops.settings.loading import load


def test_the_page_is_generated_from_the_definitions() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == written(page), "run `python -m tests.docs.settings_page`"


def test_every_help_text_is_sentences() -> None:
    assert [".".join(path) for path, key in KEYS if not key.help.endswith(".")] == []


PYTHON: list[tuple[Callable[..., Any], type, tuple[str, ...]]] = [
    (Outbox.__init__, RecordSettings, ()),
    (PostgresStore.__init__, StoreSettings, ("ledger",)),
    (SqliteStore.__init__, StoreSettings, ("ledger",)),
    (RabbitMQTransport.__init__, TransportSettings, ()),
    (Destination.__init__, DestinationSettings, ()),
]
"""Constructors, the section of the same settings, and those with another default in Python."""


def _shared() -> Iterator[tuple[str, Setting, inspect.Parameter]]:
    for constructor, section, others in PYTHON:
        for name, parameter in inspect.signature(constructor).parameters.items():
            if (key := keys_of(section).get(name)) and name not in others and parameter.default is not parameter.empty:
                yield f"{constructor.__qualname__}({name})", key, parameter


@pytest.mark.parametrize(("key", "parameter"), [pytest.param(*one, id=name) for name, *one in _shared()])
def test_a_constructor_has_the_default_of_the_setting(key: Setting, parameter: inspect.Parameter) -> None:
    assert parameter.default == key.default


ELSEWHERE = {
    "notification.outbox.": ["poll.interval", "batch.size", "initial.delay"],
    "spring.rabbitmq.": ["host", "port"],
    "outbox.publisher.": [
        "enabled",
        "polling-interval",
        "batch-size",
        "max-retries",
        "initial-retry-delay",
        "max-retry-delay",
    ],
    "outbox.processor.": [
        "enabled",
        "interval",
        "batch-size",
        "max-attempts",
        "base-retry-delay-seconds",
        "max-retry-delay-seconds",
        "lock-stale-timeout-seconds",
        "worker-id",
    ],
    "": [
        "pool",
        "event_bus",
        "table_name",
        "poll_interval",
        "batch_size",
        "max_retries",
        "min_backoff",
        "max_backoff",
        "backoff_multiplier",
    ],
}


def test_every_key_of_the_outboxes_we_know_is_mapped() -> None:
    mapped = {former for _, key in KEYS for former in key.formerly}
    assert mapped == {prefix + name for prefix, names in ELSEWHERE.items() for name in names}


def test_the_presets_share_what_the_page_says() -> None:
    for preset in PRESETS.values():
        assert (preset.retry.base, preset.retry.multiplier, preset.retry.jitter) == ("1s", 2, "none")


@pytest.mark.parametrize("sample", sorted((ROOT / "docs/samples").glob("*.toml")), ids=lambda file: file.stem)
def test_every_sample_is_named(sample: Path) -> None:
    assert f"](../{sample.relative_to(ROOT / 'docs').as_posix()})" in PAGE.read_text(encoding="utf-8")


def test_the_blocks_of_the_page_are_settings(tmp_path_factory: pytest.TempPathFactory) -> None:
    for number, block in enumerate(blocks(PAGE, "toml")):
        file = tmp_path_factory.mktemp("page") / f"{number}.toml"
        file.write_text(block)
        load(file)
