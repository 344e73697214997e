"""The reference of settings says what the description says: every key with kind, default and meaning, in its order."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pillarbox.ops.settings import Settings
from pillarbox.ops.settings.describing import Key, every_key
from pillarbox.relay.presets import PRESETS
from tests.docs.pages import ROOT, blocks
from tests.unit.ops.settings.loading import load

PATH = ROOT / "docs/reference/settings.md"
PAGE = PATH.read_text(encoding="utf-8")
KEYS = list(every_key(Settings))


def heading(path: tuple[str, ...]) -> str:
    """The table of the file that a key stands in."""
    table = ".".join(path[:-1]).replace("*", "NAME")
    if table.endswith(("bindings[]", "dead_letter")):
        return f"`{table.rpartition('.')[2].removesuffix('[]')}` of a queue"
    return f"`[[{table.removesuffix('[]').replace('[]', '')}]]`" if table.endswith("[]") else f"`[{table}]`"


def row(key: Key) -> str:
    default = "required" if key.required else "" if key.default is None else f"`{_written(key.default)}`"
    means = f"{key.doc} ({' and '.join(key.only_for)} only)" if key.only_for else key.doc
    return f"| `{key.name}` | {key.kind.word} | {default} | {means} |"


def _written(value: object) -> str:
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)


def expected() -> Iterator[str]:
    last = ""
    for path, key in KEYS:
        if (now := heading(path)) != last:
            yield now
        last = now
        yield row(key)


def test_every_setting_is_there_as_it_is_and_no_other() -> None:
    tables = PAGE[PAGE.index("## Every setting") : PAGE.index("## What must fit together")]
    found = re.findall(r"^(?:### (.+)|(\| `.+ \|))$", tables, re.MULTILINE)
    assert [title or line for title, line in found] == list(expected())


def test_every_name_that_others_use_leads_to_ours() -> None:
    lines = [
        f"| `{former}` | `{'.'.join(path).replace('*', 'NAME')}` | {note} |".replace("|  |", "| |")
        for path, key in KEYS
        for former, note in key.formerly.items()
    ]
    table = PAGE[PAGE.index("## Coming from another outbox") :]
    assert sorted(re.findall(r"^\| `.+\|$", table, re.MULTILINE)) == sorted(lines)


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


def test_the_presets_are_as_they_are() -> None:
    for name, preset in PRESETS.items():
        figures = (preset.poll_interval, preset.batch_size, preset.retry.max_attempts, preset.retry.max)
        assert f"| `{name}` | {' | '.join(f'`{figure}`' for figure in figures)} |" in PAGE
        assert (preset.retry.base, preset.retry.multiplier, preset.retry.jitter) == ("1s", 2, "none")


@pytest.mark.parametrize("sample", sorted((ROOT / "docs/samples").glob("*.toml")), ids=lambda file: file.stem)
def test_every_sample_is_named(sample: Path) -> None:
    assert f"](../{sample.relative_to(ROOT / 'docs').as_posix()})" in PAGE


def test_the_blocks_of_the_page_are_settings(tmp_path_factory: pytest.TempPathFactory) -> None:
    for number, block in enumerate(blocks(PATH, "toml")):
        file = tmp_path_factory.mktemp("page") / f"{number}.toml"
        file.write_text(block)
        load(file)
