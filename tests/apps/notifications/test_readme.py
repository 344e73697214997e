"""The READMEs: every command works as typed, and the tables match the code."""

from __future__ import annotations

import re
import sysconfig
from pathlib import Path

import pytest

from apps.notifications import settings
from apps.notifications.__main__ import LISTENERS_PORT, RELAY_PORT, commands
from tests.apps.notifications.processes import ROOT
from tests.apps.notifications.unit.test_settings import relay
from tests.apps.readme import NewUser, fresh_tree
from tests.servers.ports import free_port

FOLDER = ROOT / "apps" / "notifications"
PAGE = FOLDER / "README.md"
TEXT = PAGE.read_text(encoding="utf-8")
PORTS = ("8000", "9464", "9465", "9466")


def follow(page: Path, folder: Path, **variables: str) -> None:
    instead = {f":{port}": f":{free_port()}" for port in PORTS}
    instead["--port 8000"] = f"--port {instead[':8000'][1:]}"
    home = folder / "home"
    home.mkdir()
    NewUser(fresh_tree(folder), home, instead=instead, **variables).follow(page)


def test_every_command_works_for_a_new_user(tmp_path: Path) -> None:
    """From a copy of the tree with the servers that `make servers` starts; only the ports differ."""
    follow(PAGE, tmp_path)


@pytest.mark.parametrize("page", ["api", "delivery"])
def test_every_command_of_a_subpage_works(page: str, tmp_path: Path, postgres_database: str) -> None:
    path = f"{sysconfig.get_path('scripts')}:/usr/bin:/bin"
    follow(FOLDER / page / "README.md", tmp_path, PATH=path, PILLARBOX_STORE=postgres_database)


def test_the_readme_names_every_command() -> None:
    assert set(re.findall(r"python -m apps\.notifications ([a-z-]+)", TEXT)) == set(commands.commands)


def test_the_readme_lists_every_variable_with_its_default() -> None:
    table = TEXT[TEXT.index("## Configuration") :]
    documented = dict(re.findall(r"^\| `(NOTIFICATION\w+)` \| `(.+?)` \|", table, re.MULTILINE))
    assert documented.pop(settings.METRICS) == RELAY_PORT
    assert f"`listen` has {LISTENERS_PORT.rpartition(':')[2]}" in table
    here, there = relay().relay, relay(**documented).relay
    assert {name for name in documented if name.startswith(settings.PRODUCER)} == set(documented)
    assert (there.config.poll_interval, here.config.poll_interval) == ("1.0s", "1s")
    assert (there.config.initial_delay, here.config.initial_delay) == ("2.0s", "2s")
    assert there.config.batch_size == here.config.batch_size


@pytest.mark.parametrize("page", [PAGE, *FOLDER.glob("*/README.md")], ids=lambda page: page.parent.name)
def test_every_link_has_a_target(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / link).exists(), link
