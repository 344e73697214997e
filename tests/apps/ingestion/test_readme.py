"""The README: its commands work as typed, and its tables say what is there."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from apps.ingestion.commands import main
from apps.ingestion.settings import Settings
from apps.ingestion.topology import QUEUES
from tests.apps.ingestion.running import ROOT, Service, ingestion
from tests.docs.pages import blocks

PATH = ROOT / "apps" / "ingestion" / "README.md"
PAGE = PATH.read_text(encoding="utf-8")
CURLS = blocks(PATH, "bash")


def test_every_curl_command_is_answered(tmp_path: Path) -> None:
    """The service as the README starts it, except for the port."""
    assert ingestion("migrate", cwd=tmp_path).returncode == 0
    with Service(folder=tmp_path) as running:
        uploaded, page, health = (run(command, running.port) for command in CURLS)
    assert (uploaded["name"], uploaded["status"]) == ("test-document.pdf", "UPLOADED")
    assert [document["id"] for document in page["items"]] == [uploaded["id"]]
    assert health["status"] == "UP"
    assert f"[ticket-4711] Document uploaded successfully. ID: {uploaded['id']}" in running.story()


def run(command: str, port: int) -> dict[str, Any]:
    words = shlex.split(command.replace("\\\n", " ").replace("localhost:8081", f"127.0.0.1:{port}"))
    done = subprocess.run(
        [words[0], "--silent", "--fail-with-body", *words[1:]], capture_output=True, text=True, check=True
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_every_command_it_names_exists_and_every_command_is_named() -> None:
    assert set(re.findall(r"python -m apps\.ingestion (\w+)", PAGE)) <= set(main.commands)
    table = PAGE[PAGE.index("| command | is |") : PAGE.index("| variable | default")]
    assert {
        name for row in re.findall(r"^\| (`.+?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)", row)
    } == (set(main.commands))


def test_every_variable_is_told_with_its_default() -> None:
    told = dict(re.findall(r"^\| `(INGESTION_\w+)` \| (.+?) \|", PAGE, re.MULTILINE))
    given = {name: value.strip("`") for name, value in told.items() if value != "empty"}
    assert Settings.read(given) == Settings()
    described = (ROOT / "apps" / "ingestion" / "settings.py").read_text(encoding="utf-8").split("class _Reading")[0]
    assert set(told) == set(re.findall(r"INGESTION_[A-Z_]*[A-Z]", described))


def test_every_queue_is_in_the_table() -> None:
    for queue in QUEUES:
        assert queue.dead_letter is not None
        [binding] = queue.bindings
        row = f"| `{binding.exchange}` (topic) | `{binding.routing_key}` | `{queue.name}` |"
        assert f"{row} `{queue.dead_letter.exchange}` → `{queue.dead_letter.queue}` |" in PAGE


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", PAGE))))
def test_every_link_leads_somewhere(link: str) -> None:
    assert (PATH.parent / link).exists()
