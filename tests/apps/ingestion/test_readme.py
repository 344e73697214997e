"""The README: its commands work as typed, and its tables match the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from apps.ingestion.commands import main
from apps.ingestion.settings import Settings
from apps.ingestion.topology import QUEUES
from tests.apps.ingestion.running import ROOT
from tests.apps.readme import NewUser, fresh_tree
from tests.servers.ports import free_port

PATH = ROOT / "apps" / "ingestion" / "README.md"
PAGE = PATH.read_text(encoding="utf-8")


def test_every_command_works_for_a_new_user(tmp_path: Path) -> None:
    """From a copy of the tree with the servers that `make servers` starts; only the ports differ."""
    ports = [free_port() for _ in range(3)]
    instead = {f":{there}": f":{here}" for there, here in zip((8081, 8082, 8083), ports, strict=True)}
    home = tmp_path / "home"
    home.mkdir()
    NewUser(fresh_tree(tmp_path), home, instead=instead, INGESTION_LISTEN=f"127.0.0.1:{ports[0]}").follow(PATH)


def test_the_readme_names_every_command() -> None:
    assert set(re.findall(r"python -m apps\.ingestion (\w+)", PAGE)) <= set(main.commands)
    table = PAGE[PAGE.index("| command | is |") : PAGE.index("## Configuration")]
    assert {
        name for row in re.findall(r"^\| (`.+?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)", row)
    } == (set(main.commands))


def test_the_readme_lists_every_variable_with_its_default() -> None:
    documented = dict(re.findall(r"^\| `((?:INGESTION|OUTBOX_PUBLISHER)_\w+)` \| (.+?) \|", PAGE, re.MULTILINE))
    given = {name: value.strip("`") for name, value in documented.items() if value != "empty"}
    assert Settings.read(given) == Settings()
    settings, publisher = (
        (ROOT / "apps" / "ingestion" / f"{name}.py").read_text(encoding="utf-8") for name in ("settings", "publisher")
    )
    described = settings.split("class _Reading")[0] + publisher
    assert set(documented) == set(re.findall(r"(?:INGESTION|OUTBOX_PUBLISHER)_[A-Z_]*[A-Z]", described))


def test_the_readme_lists_every_queue() -> None:
    for queue in QUEUES:
        assert queue.dead_letter is not None
        [binding] = queue.bindings
        row = f"| `{binding.exchange}` (topic) | `{binding.routing_key}` | `{queue.name}` |"
        assert f"{row} `{queue.dead_letter.exchange}` → `{queue.dead_letter.queue}` |" in PAGE


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", PAGE))))
def test_every_link_has_a_target(link: str) -> None:
    assert (PATH.parent / link).exists()
