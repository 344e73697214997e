"""The container files match the application and each other, as far as a test without an engine can check."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from apps.ingestion.commands import main
from apps.ingestion.settings import Settings
from tests.apps.ingestion.running import ROOT

INFRA = yaml.safe_load((ROOT / "docker-compose.infra.yml").read_text(encoding="utf-8"))
SERVICES = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
REQUIREMENTS = ROOT / "apps" / "ingestion" / "requirements.txt"


def instructions(name: str) -> list[str]:
    return re.findall(rf"^{name} (.+)$", DOCKERFILE, re.MULTILINE)


def variables(service: str) -> dict[str, str]:
    """The variables that compose passes by default."""
    given: dict[str, str] = SERVICES["services"][service]["environment"]
    return {name: re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value) for name, value in given.items()}


def test_the_database_is_the_one_of_the_guide() -> None:
    database = INFRA["services"]["ingestion-db"]
    assert database["container_name"] == "ingestion-db"
    assert (database["environment"]["POSTGRES_USER"], database["environment"]["POSTGRES_DB"]) == (
        *("postgres", "ingestion_db"),
    )
    assert database["volumes"] == ["ingestion-db:/var/lib/postgresql/data"]


def test_the_broker_has_its_management_page() -> None:
    broker = INFRA["services"]["rabbitmq"]
    assert broker["image"].endswith("-management")
    assert [port.rpartition(":")[2] for port in broker["ports"]] == ["5672", "15672"]


@pytest.mark.parametrize("name", INFRA["services"])
def test_stateful_services_have_a_volume_and_a_health_check(name: str) -> None:
    service = INFRA["services"][name]
    assert service["healthcheck"]["test"][0] == "CMD"
    assert [volume.partition(":")[0] for volume in service["volumes"]] == [name]
    assert name in INFRA["volumes"]


def test_every_port_is_bound_to_loopback() -> None:
    ports = [port for file in (INFRA, SERVICES) for one in file["services"].values() for port in one.get("ports", [])]
    assert ports
    assert [port for port in ports if not port.startswith("127.0.0.1:")] == []


def test_both_files_use_one_network() -> None:
    assert INFRA["networks"]["ingestion"]["name"] == "ingestion"
    assert SERVICES["networks"] == {"ingestion": {"external": True}}
    assert {tuple(one["networks"]) for file in (INFRA, SERVICES) for one in file["services"].values()} == {
        ("ingestion",)
    }


def test_every_service_of_the_guide_runs_an_existing_command() -> None:
    commands = {name: service["command"][0] for name, service in SERVICES["services"].items()}
    assert commands == {
        "migrate": "migrate",
        "ingestion-service": "serve",
        "validation-service": "validate",
        "enrichment-service": "enrich",
    }
    assert set(commands.values()) <= set(main.commands)
    main.commands["migrate"].make_context("migrate", SERVICES["services"]["migrate"]["command"][1:]).close()
    assert SERVICES["services"]["ingestion-service"]["ports"] == ["127.0.0.1:8081:8081"]


@pytest.mark.parametrize("name", SERVICES["services"])
def test_the_variables_are_valid_settings_and_name_the_services_of_the_other_file(name: str) -> None:
    settings = Settings.read(variables(name))
    for url, port in ((settings.store, 5432), (settings.transport, 5672)):
        host = urlsplit(url).hostname
        assert host in INFRA["services"]
        assert any(one.endswith(f":{port}") for one in INFRA["services"][host]["ports"])
    assert urlsplit(settings.store).path == "/" + INFRA["services"]["ingestion-db"]["environment"]["POSTGRES_DB"]


@pytest.mark.parametrize("name", [name for name in SERVICES["services"] if name != "migrate"])
def test_no_service_starts_before_the_migration(name: str) -> None:
    assert SERVICES["services"][name]["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}


def copied() -> Iterator[str]:
    for line in instructions("COPY"):
        if not line.startswith("--from"):
            yield from line.split()[:-1]


def test_copied_files_exist_and_are_not_ignored() -> None:
    sources = list(copied())
    assert "apps/ingestion" in sources
    assert [source for source in sources if not (ROOT / source).exists()] == []
    let_through = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE)
    assert {source.split("/")[0] for source in sources} <= set(let_through)


def test_the_image_runs_existing_commands_as_an_unprivileged_user() -> None:
    [start], [default], [health] = instructions("ENTRYPOINT"), instructions("CMD"), instructions("HEALTHCHECK")
    assert json.loads(start) == ["python", "-m", "apps.ingestion"]
    probe = json.loads(health.partition("CMD ")[2])
    assert probe[:3] == json.loads(start)
    assert {probe[3], *json.loads(default)} <= set(main.commands)
    assert instructions("USER") == ["10001"]
    assert instructions("EXPOSE") == [str(Settings().port)]


def test_the_variables_of_the_image_are_valid_settings() -> None:
    given = dict(re.findall(r"\b(INGESTION_\w+)=(\S+)", " ".join(instructions("ENV"))))
    assert Settings.read(given).port == 8081


def test_the_image_has_the_tested_versions() -> None:
    def pins(file: Path) -> set[str]:
        return set(re.findall(r"^[\w-]+==\S+", file.read_text(encoding="utf-8"), re.MULTILINE))

    assert pins(REQUIREMENTS)
    assert pins(REQUIREMENTS) - pins(ROOT / "requirements" / "dev.txt") == set()


def test_the_image_contains_all_imports_of_the_service(tmp_path: Path) -> None:
    """Import with the listed packages only."""
    listed = re.findall(r"^([\w-]+)==", REQUIREMENTS.read_text(encoding="utf-8"), re.MULTILINE)
    for name in listed:
        for file in distribution(name).files or ():
            link = tmp_path / file.parts[0]
            if file.parts[0] != ".." and not link.exists():
                link.symlink_to(Path(str(distribution(name).locate_file(file.parts[0]))))
    modules = "apps.ingestion.api.app, apps.ingestion.running, apps.ingestion.commands, uvicorn, psycopg"
    path = os.pathsep.join(map(str, (tmp_path, ROOT / "src", ROOT)))
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import {modules}"],
        env={"PYTHONPATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
