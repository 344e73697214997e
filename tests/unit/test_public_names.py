"""The public names of `pillarbox`, and what importing them loads."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import pillarbox

PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"


@pytest.mark.parametrize("name", pillarbox.__all__)
def test_every_public_name_can_be_imported(name: str) -> None:
    assert getattr(pillarbox, name) is not None
    assert name in dir(pillarbox)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Outbocks'"):
        getattr(pillarbox, "Outbocks")  # noqa: B009 - by its name mypy would refuse it before the test could


def test_the_version_is_that_of_the_package() -> None:
    assert pillarbox.__version__ == tomllib.loads(PROJECT.read_text())["project"]["version"]


@pytest.mark.parametrize("statement", ["import pillarbox", "from pillarbox import Event, EventTypes, Inbox, Outbox"])
def test_recording_imports_no_driver(statement: str) -> None:
    drivers = "{'asyncpg', 'psycopg', 'psycopg2', 'sqlalchemy', 'aiosqlite', 'pydantic', 'pika', 'nats'}"
    check = f"{statement}; import sys; print(*sorted({drivers} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
