"""The reference of settings is generated from their definitions: every key with kind, default and meaning."""

import ast
import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from pillarbox import Destination, Outbox, TlsOptions, open_store
from pillarbox.plugins import StoreOptions
from pillarbox.record.options import RecordOptions
from pillarbox.relay.config import PRESETS
from pillarbox.relay.routing import DestinationOptions
from pillarbox.settings.shared import DEFAULT_MAX_PAYLOAD
from pillarbox.stores.memory import MemoryStore
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.transports.nats import NatsDeadLetters, NatsSource, NatsTransport
from pillarbox.transports.nats.plugin import NatsOptions
from pillarbox.transports.rabbitmq import RabbitMQDeadLetters, RabbitMQSource, RabbitMQTransport
from pillarbox.transports.rabbitmq.plugin import RabbitMQOptions
from pillarbox.transports.redis import RedisDeadLetters, RedisSource, RedisTransport
from pillarbox.transports.redis.plugin import RedisOptions
from tests.docs.pages import ROOT, blocks
from tests.docs.settings_page import KEYS, PAGE, written
from tests.unit.ops.settings.loading import load


def test_the_page_is_generated_from_the_definitions() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == written(page), "run `python -m tests.docs.settings_page`"


def test_every_help_text_is_sentences() -> None:
    assert [".".join(path) for path, key in KEYS if not key.help.endswith(".")] == []


CALLS: list[tuple[Callable[..., Any], type[Any], tuple[str, ...]]] = [
    (Outbox, RecordOptions, ()),
    (open_store, StoreOptions, ("extra",)),
    (PostgresStore, StoreOptions, ("extra",)),
    (SqliteStore, StoreOptions, ("extra", "statement_timeout")),
    (MemoryStore, StoreOptions, ("extra", "max_payload", "statement_timeout", "tables")),
    (RabbitMQTransport, RabbitMQOptions, ()),
    (RabbitMQSource, RabbitMQOptions, ("queues", "window")),
    (RabbitMQDeadLetters, RabbitMQOptions, ("declare", "exchanges", "queues", "window")),
    (NatsTransport, NatsOptions, ()),
    (NatsSource, NatsOptions, ("streams", "window")),
    (NatsDeadLetters, NatsOptions, ("declare", "replicas", "streams", "window")),
    (RedisTransport, RedisOptions, ()),
    (RedisSource, RedisOptions, ("connections", "wait_replicas")),
    (RedisDeadLetters, RedisOptions, ("connections", "wait_replicas")),
    (Destination, DestinationOptions, ()),
]
"""What users call, the class that defines its settings, and those that it does not take."""


@pytest.mark.parametrize(("call", "options", "others"), CALLS, ids=[call.__name__ for call, *_ in CALLS])
def test_a_call_takes_the_settings_by_the_names_and_with_the_defaults_of_their_definition(
    call: Callable[..., Any], options: type[Any], others: tuple[str, ...]
) -> None:
    tls = {one.name for one in fields(TlsOptions)} if issubclass(options, TlsOptions) else set()
    defined = {one.name: one.default for one in fields(options) if one.name not in {*others, *tls}}
    parameters = inspect.signature(call).parameters
    assert not tls or parameters["tls"].default is None, "TLS is one argument: `tls=TlsOptions(…)`"
    given = {name: parameters[name].default for name in defined}
    if given.get("max_payload") == DEFAULT_MAX_PAYLOAD:
        defined["max_payload"] = DEFAULT_MAX_PAYLOAD  # `StoreOptions` has it in bytes
    assert given == defined


NO_SETTINGS = {
    "Pace.batch_size": "what a transport asks for, not a setting of the relay",
    "Consumer.drain_timeout": "of a consumer; the setting is a relay's",
    "Consumer.workers": "of a consumer; the setting is that of handlers",
    "RabbitMQDiagnosis.timeout": "of a check; the setting is that of handlers",
    "WebhookDiagnosis.timeout": "likewise",
    "NatsDiagnosis.timeout": "of a check; the setting is that of handlers",
    "RedisDiagnosis.timeout": "of a check; the setting is that of handlers",
    "QueueFacts.durable": "what a broker says of a queue",
}
"""Names that settings have, too."""


def test_no_argument_and_no_field_of_the_library_defines_a_setting_again() -> None:
    """A default is written once, in the definition; everything else refers to it: `window=RabbitMQOptions.window`."""
    names = {key.name for _, key in KEYS}
    again = {where for name, where, default in _defaults() if name in names and default not in (None, "", False, 0)}
    assert again == set(NO_SETTINGS)


def test_no_help_text_is_written_twice() -> None:
    helps = [text for file in FILES for text in _help_texts(file)]
    assert len(helps) > 60
    assert [text for text, count in Counter(helps).items() if count > 1] == []


def test_a_section_defines_no_setting_that_the_library_takes_as_an_argument() -> None:
    sections = ROOT / "src/pillarbox/ops/settings"
    own = {name for file in (sections / "sections.py", sections / "transports.py") for name in _settings_in(file)}
    taken = {name for call, *_ in CALLS for name in inspect.signature(call).parameters}
    assert own & taken == {"url", "options"}, "`url` and an adapter's `options` have no default in Python"


FILES = [
    file
    for file in sorted((ROOT / "src/pillarbox").rglob("*.py"))
    if not file.is_relative_to(ROOT / "src/pillarbox/testing")
]


def _defaults() -> Iterator[tuple[str, str, object]]:
    """Name, place and value of every literal default of a public argument or field of the library."""
    for file in FILES:
        if file.is_relative_to(ROOT / "src/pillarbox/ops"):
            continue
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for owner in tree.body:
            functions = [owner] if isinstance(owner, ast.FunctionDef) else []
            if isinstance(owner, ast.ClassDef):
                functions += [one for one in owner.body if isinstance(one, ast.FunctionDef)]
                for one in owner.body:
                    if isinstance(one, ast.AnnAssign) and isinstance(one.value, ast.Constant):
                        name = ast.unparse(one.target)
                        yield name, f"{owner.name}.{name}", one.value.value
            for function in functions:
                for argument, default in _arguments(function.args):
                    if isinstance(default, ast.Constant):
                        within = getattr(owner, "name", "")
                        yield argument, f"{within}.{argument}", default.value


def _arguments(given: ast.arguments) -> Iterator[tuple[str, ast.expr | None]]:
    positional = [*given.posonlyargs, *given.args]
    yield from ((one.arg, value) for one, value in zip(reversed(positional), reversed(given.defaults), strict=False))
    yield from ((one.arg, value) for one, value in zip(given.kwonlyargs, given.kw_defaults, strict=True))


def _help_texts(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            at = {"setting": 2, "about": 1}.get(node.func.id)
            if at is not None and len(node.args) > at and isinstance(text := node.args[at], ast.Constant):
                yield str(text.value)


def _settings_in(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.AnnAssign) and isinstance(made := node.value, ast.Call) and _name(made) == "setting":
            yield ast.unparse(node.target)


def _name(call: ast.Call) -> str:
    return ast.unparse(call.func)


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
