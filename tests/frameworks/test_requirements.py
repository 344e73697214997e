"""The requirements of each example: its environment, made from the lock, has everything that they name."""

from pathlib import Path

import pytest

from tests.frameworks.conftest import MakeEnvironment
from tests.frameworks.environment import ROOT, copy_example

EXAMPLES = {
    "celery_app": "celery",
    "django_shop": "django",
    "fastapi_shop": "fastapi",
    "faststream_app": "faststream",
    "flask_shop": "flask",
}
"""Example → the lock of its environment."""


def test_every_example_with_requirements_is_known() -> None:
    assert {path.parent.name for path in (ROOT / "examples").glob("*/requirements.txt")} == set(EXAMPLES)


@pytest.mark.parametrize("example", EXAMPLES)
def test_nothing_is_missing_after_the_environment_is_made_from_its_lock(
    example: str, environment: MakeEnvironment, tmp_path: Path
) -> None:
    folder = copy_example(example, tmp_path)
    options = ("--dry-run", "--no-index", "--disable-pip-version-check")
    own = environment(EXAMPLES[example])
    ran = own.run("python", "-m", "pip", "install", *options, "-r", "requirements.txt", folder=folder)
    assert "Requirement already satisfied: pillarbox" in ran.stdout
    assert "Would install" not in ran.stdout
