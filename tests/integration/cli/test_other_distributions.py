"""A store and a transport of another distribution work in pillarbox.toml, CLI and doctor."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.cli.running import fresh_pillarbox

Run = Callable[..., "subprocess.CompletedProcess[str]"]

SETTINGS = """
[store]
url = "toy:///{folder}/shop.db"

[transports.out]
url = "journal://{folder}/journals"
[transports.out.options]
ending = ".log"

[destinations.audit]
[destinations.audit.options]
journal = "everything"

[[routes]]
to = ["audit"]
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with a distribution that registers a store and a transport."""
    site = tmp_path / "site"
    _distribution(site, "toy-adapters", "toy_adapters")
    return site


@pytest.fixture
def run(tmp_path: Path, installed: Path) -> Run:
    (tmp_path / "pillarbox.toml").write_text(SETTINGS.format(folder=tmp_path))
    (tmp_path / "journals").mkdir()
    return lambda *arguments, **variables: fresh_pillarbox(
        *arguments, cwd=tmp_path, PYTHONPATH=":".join([str(installed), *sys.path]), **variables
    )


def _distribution(site: Path, name: str, module: str) -> None:
    info = site / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    shutil.copy(Path(__file__).with_name("toy_adapters.py"), site / f"{module}.py")
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[pillarbox.stores]\ntoy = {module}:ToyPlugin\n\n[pillarbox.transports]\njournal = {module}:JournalPlugin\n"
    )


def test_events_are_recorded_relayed_and_listed(run: Run, tmp_path: Path) -> None:
    for command in (["schema", "apply"], ["record", "order.placed", '{"id": 42}'], ["relay", "--until-empty"]):
        done = run(*command)
        assert (done.returncode, done.stderr if done.returncode else "") == (0, "")
    assert (tmp_path / "journals" / "everything.log").read_text() == '{"id":42}\n'
    [event] = json.loads(run("events", "list", "--json").stdout)["events"]
    assert (event["status"], event["destination"]) == ("PUBLISHED", "audit")


def test_doctor_checks_the_adapters(run: Run, tmp_path: Path) -> None:
    run("schema", "apply")
    findings = {one["check"]: one for one in json.loads(run("doctor", "--json").stdout)["findings"]}
    assert findings["settings.relay"]["result"] == "pass"
    assert findings["store.schema"]["result"] == "pass"
    assert findings["transport.reachable"] == findings["transport.reachable"] | {"subject": "out", "result": "pass"}
    (tmp_path / "journals").rmdir()
    findings = {one["check"]: one for one in json.loads(run("doctor", "--json").stdout)["findings"]}
    assert findings["transport.reachable"]["result"] == "fail"
    assert "there is no folder" in findings["transport.reachable"]["message"]


def test_the_benchmark_uses_and_deletes_their_temporary_store_and_queue(run: Run, tmp_path: Path) -> None:
    done = run("bench", "--seconds", "1", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["store"], found["transport"]) == ("toy", "out")
    assert found["limits"].keys() == {"relay", "store", "transport"}
    assert list(tmp_path.rglob("*bench_*")) == []


def test_a_store_without_temporary_tables_cannot_be_benchmarked(run: Run, installed: Path) -> None:
    module = installed / "toy_adapters.py"
    module.write_text(module.read_text().replace("scratch_stores = True", "scratch_stores = False"))
    done = run("bench", "--seconds", "1")
    assert (done.returncode, done.stdout) == (2, "")
    assert "toy:// does not support temporary tables" in done.stderr


def test_the_depth_of_their_dead_letter_queues_is_shown(run: Run, tmp_path: Path) -> None:
    run("schema", "apply")
    (tmp_path / "journals" / "everything.dlq").write_text("one\ntwo\n")
    shown = json.loads(run("status", "--json").stdout)["broker_dead_letters"]
    assert shown == [{"transport": "out", "queue": "everything.dlq", "depth": 2, "error": None}]


def test_a_hot_key_is_advised_to_use_pipelined_ordering_where_the_transport_supports_it(
    run: Run, installed: Path, tmp_path: Path
) -> None:
    run("schema", "apply")
    lines = tmp_path / "events.ndjson"
    lines.write_text(json.dumps({"event_type": "order.placed", "payload": {}, "key": "busy"}).join(["", "\n"]) * 1_000)
    assert run("record", "--ndjson", str(lines)).returncode == 0
    assert "[destinations.audit]" in json.loads(run("keys", "busiest", "--json").stdout)["advice"]
    module = installed / "toy_adapters.py"
    module.write_text(module.read_text().replace("pipelined = True", "pipelined = False"))
    assert json.loads(run("keys", "busiest", "--json").stdout)["advice"] is None


def test_the_settings_accept_pipelined_ordering_where_the_transport_supports_it(
    run: Run, installed: Path, tmp_path: Path
) -> None:
    file = tmp_path / "pillarbox.toml"
    file.write_text(
        file.read_text().replace("[destinations.audit]\n", '[destinations.audit]\nordering = "pipelined"\n')
    )
    assert run("config", "check").returncode == 0
    module = installed / "toy_adapters.py"
    module.write_text(module.read_text().replace("pipelined = True", "pipelined = False"))
    done = run("config", "check")
    assert done.returncode == 2
    assert 'ordering in pillarbox.toml is "pipelined", which journal does not support' in done.stderr


def test_the_relay_describes_default_destinations(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "pillarbox.toml"
    file.write_text(file.read_text().partition("[destinations")[0])
    run("schema", "apply")
    assert "each event to the journal of its type" in run("relay", "--until-empty").stdout


def test_an_invalid_option_is_named_with_its_location(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "pillarbox.toml"
    file.write_text(file.read_text().replace("ending =", "beginning ="))
    done = run("config", "check")
    assert done.returncode == 2
    assert "transports.out" in done.stderr
    assert "journal has no option 'beginning'; there is ending" in done.stderr


def test_the_url_of_an_unknown_scheme_is_masked(run: Run) -> None:
    assert "the store is toy://***" in run("doctor").stdout


def test_a_scheme_registered_twice_is_rejected(run: Run, installed: Path) -> None:
    _distribution(installed, "more-toys", "more_toys")
    done = run("schema", "status")
    assert "more-toys and toy-adapters both register 'journal'" in done.stderr


def test_an_unknown_scheme_is_rejected(run: Run) -> None:
    done = run("schema", "status", PILLARBOX_STORE="oracle://db/shop")
    assert "there is no store for oracle://" in done.stderr


def test_an_adapter_that_cannot_be_imported_is_an_error(run: Run, installed: Path) -> None:
    (installed / "toy_adapters.py").write_text("import nothing_like_this\n")
    done = run("schema", "status")
    assert "the transport for journal:// cannot be loaded from toy_adapters:JournalPlugin" in done.stderr
