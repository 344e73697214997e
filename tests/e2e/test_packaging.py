"""The built distributions: metadata, extras, links, and a source distribution that passes its own tests."""

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.e2e.running import must_run, run

REPOSITORY = "https://forge.test/team/pillarbox"
RELATIVE = re.compile(r"\]\((?!https://|#)[^)]+\)")
SUBSET = [
    *("tests/unit/core", "tests/unit/stores", "tests/unit/inbox", "tests/unit/relay"),
    *("tests/unit/record/test_rows.py", "tests/unit/record/test_event_transactions.py"),
    *("tests/docs/test_links.py", "tests/upgrades"),
]
"""Tests of the core, of recording and of the relay, those that read the documentation, and those of the migrations.

`make test-sdist` names all unit tests instead, in `SDIST_TESTS`.
"""


@pytest.fixture(scope="session")
def sdist(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    must_run([sys.executable, "-m", "build", "--sdist", "--no-isolation", "-o", folder, pytestconfig.rootpath], folder)
    (built,) = folder.glob("pillarbox-*.tar.gz")
    return built


def metadata_of(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return Parser().parsestr(archive.read(name).decode())


@pytest.fixture(scope="session")
def published(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Message:
    """The metadata of a wheel built from the source distribution with the address of a repository."""
    folder = tmp_path_factory.mktemp("published")
    environment = os.environ | {"PILLARBOX_REPOSITORY": f"{REPOSITORY}/"}
    source = unpacked(sdist, folder)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(source)]
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return metadata_of(built)


def unpacked(sdist: Path, folder: Path) -> Path:
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (root,) = (path for path in folder.iterdir() if path.is_dir())
    return root


def test_the_index_accepts_both_distributions(wheel: Path, sdist: Path, pytestconfig: pytest.Config) -> None:
    """The checks of the release page pass as typed there: in the clone, after the build."""
    page = (pytestconfig.rootpath / "docs/contributing/release.md").read_text(encoding="utf-8")
    commands = re.findall(r"^ *\$ \.venv/bin/(twine|check-wheel-contents) (.*)dist/\*(\.whl)?$", page, re.MULTILINE)
    assert [tool for tool, *_ in commands] == ["twine", "check-wheel-contents"]
    for tool, options, only_wheel in commands:
        built = [wheel] if only_wheel else [wheel, sdist]
        must_run([Path(sys.executable).parent / tool, *options.split(), *built], pytestconfig.rootpath)


def test_the_project_urls_lead_to_the_repository(published: Message) -> None:
    urls = dict(line.split(", ", 1) for line in published.get_all("Project-URL", []))
    assert urls == {
        "Homepage": REPOSITORY,
        "Documentation": f"{REPOSITORY}/blob/v0.1.0/docs/README.md",
        "Changelog": f"{REPOSITORY}/blob/v0.1.0/CHANGELOG.md",
        "Issues": f"{REPOSITORY}/issues",
        "Source": REPOSITORY,
    }


def test_every_link_on_the_index_page_is_absolute_and_leads_to_a_file(
    published: Message, pytestconfig: pytest.Config
) -> None:
    page = str(published.get_payload())
    assert RELATIVE.findall(page) == []
    paths = re.findall(rf"\]\({REPOSITORY}/(?:blob|raw)/v0\.1\.0/([^)#]+)[^)]*\)", page)
    assert len(paths) > 20
    assert [path for path in paths if not (pytestconfig.rootpath / path).is_file()] == []
    assert f"![The demo: rates, lag, lanes and retries while it runs, and the result]({REPOSITORY}/raw/v0.1.0/" in page


def test_without_a_public_repository_nothing_links_to_nowhere(wheel: Path, pytestconfig: pytest.Config) -> None:
    metadata = metadata_of(wheel)
    page, readme = str(metadata.get_payload()), (pytestconfig.rootpath / "README.md").read_text(encoding="utf-8")
    assert metadata.get_all("Project-URL") is None
    assert RELATIVE.search(readme)
    assert RELATIVE.findall(page) == []
    assert "Supported versions (`docs/reference/versions.md`)" in page
    # Code is not changed: the example is the same as in the repository.
    assert re.findall(r"^```python\n.*?^```", page, re.MULTILINE | re.DOTALL) == re.findall(
        r"^```python\n.*?^```", readme, re.MULTILINE | re.DOTALL
    )


@pytest.mark.parametrize("address", ["forge.test/pillarbox", "http://forge.test/team/pillarbox", "https://forge.test"])
def test_an_address_that_is_none_fails_the_build(address: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    script = (
        "import runpy; hook = runpy.run_path('hatch_build.py')['MetadataHook']"
        f"('.', {{'repository': {address!r}}}); hook.update({{'version': '1'}})"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PILLARBOX_REPOSITORY"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=pytestconfig.rootpath,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"repository {address!r} is not the address of a repository; write https://host/owner/name" in done.stderr


def needed_by(metadata: Message, extra: str) -> set[str]:
    """The distributions that an extra needs, through the extras that it includes."""
    found: set[str] = set()
    for line in metadata.get_all("Requires-Dist", []):
        requirement = Requirement(line)
        if requirement.marker is None or not requirement.marker.evaluate({"extra": extra}):
            continue
        if requirement.name == "pillarbox":
            found |= {name for included in requirement.extras for name in needed_by(metadata, included)}
        else:
            found.add(requirement.name)
    return found


def test_the_extra_all_has_everything_but_test_tools(wheel: Path) -> None:
    metadata = metadata_of(wheel)
    extras = set(metadata.get_all("Provides-Extra", []))
    test_tools = needed_by(metadata, "testing")
    assert {"pytest", "hypothesis"} <= test_tools
    assert needed_by(metadata, "all") & test_tools == set()
    others = {name for extra in extras - {"all", "testing"} for name in needed_by(metadata, extra)}
    assert needed_by(metadata, "all") == others


def test_the_classifiers_name_the_versions_that_every_test_ran_with(wheel: Path, pytestconfig: pytest.Config) -> None:
    page = (pytestconfig.rootpath / "docs/reference/versions.md").read_text(encoding="utf-8")
    [rows] = re.findall(r"^\| Python \|.*\n(?:\|  *\|.*\n)*", page, re.MULTILINE)
    ran = re.findall(r"^\| (?:Python)? ?\| ([\d.]+) \| `[^`]+` \| all \|$", rows, re.MULTILINE)
    assert ran
    classified = re.findall(
        r"^Programming Language :: Python :: (3\.\d+)$",
        "\n".join(metadata_of(wheel).get_all("Classifier", [])),
        re.MULTILINE,
    )
    assert classified == ran


def test_the_plugin_of_pytest_is_registered(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/entry_points.txt")]
        entries = archive.read(name).decode()
    assert "[pytest11]\npillarbox = pillarbox.testing.plugin\n" in entries


def test_the_source_distribution_has_every_file_of_the_repository(sdist: Path, pytestconfig: pytest.Config) -> None:
    listed = run(["git", "ls-files"], pytestconfig.rootpath)
    if listed.returncode != 0:
        pytest.skip("not supported: an unpacked source distribution is no clone, and has no list to compare with")
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    assert [name for name in listed.stdout.splitlines() if name not in packed] == []


def test_the_source_distribution_passes_its_own_tests(sdist: Path, tmp_path: Path) -> None:
    root, selected = unpacked(sdist, tmp_path), os.environ.get("SDIST_TESTS", "").split() or SUBSET
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "PILLARBOX"))}
    environment = kept | {"PYTHONPATH": str(root / "src")}
    place = [sys.executable, "-c", "import pillarbox; print(pillarbox.__file__)"]
    imported = subprocess.run(place, cwd=root, env=environment, capture_output=True, text=True, check=True).stdout
    assert Path(imported.strip()).is_relative_to(root)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *selected],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert re.search(r"^\d{3,} passed", done.stdout, re.MULTILINE)
