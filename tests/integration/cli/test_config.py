"""`pillarbox config`, and the options of all commands."""

import json
from pathlib import Path

import pytest

from tests.integration.cli.running import pillarbox

CANARY = "canary-password"
FILE = """
[store]
url = "postgresql://app:canary-password@db/shop"

[relay]
preset = "production"
batch_size = 7
adaptive = false

[transports.out]
url = "stdout://"
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder with settings."""
    (tmp_path / "pillarbox.toml").write_text(FILE)
    return tmp_path


def test_show_prints_each_value_and_its_source(shop: Path) -> None:
    done = pillarbox("--set", "relay.name=till", "config", "show", cwd=shop, PILLARBOX_RELAY__MAX_IN_FLIGHT_BATCHES="2")
    assert done.returncode == 0, done.stderr
    shown = {line.split(" = ")[0]: line.split(" = ")[1].rsplit("  # ", 1) for line in done.stdout.splitlines()}
    reported = {key: (value.strip(), origin) for key, (value, origin) in shown.items()}
    assert reported["relay.name"] == ('"till"', "--set relay.name")
    assert reported["relay.max_in_flight_batches"] == ("2", "PILLARBOX_RELAY__MAX_IN_FLIGHT_BATCHES")
    assert reported["relay.batch_size"] == ("7", "pillarbox.toml")
    assert reported["relay.poll_interval"] == ('"5s"', "preset production")
    assert reported["relay.lease"] == ('"15s"', "default")
    assert reported["store.url"] == ('"postgresql://app:***@db/shop"', "pillarbox.toml")
    assert reported["transports.out.url"] == ('"stdout://"', "pillarbox.toml")


def test_show_prints_json(shop: Path) -> None:
    done = pillarbox("config", "show", "--json", cwd=shop)
    settings = {one["key"]: one for one in json.loads(done.stdout)["settings"]}
    assert settings["relay.batch_size"] == {"key": "relay.batch_size", "value": 7, "origin": "pillarbox.toml"}
    assert CANARY not in done.stdout


def test_check_accepts_valid_settings_and_prints_notes(shop: Path) -> None:
    done = pillarbox("--set", "relay.adaptive=false", "config", "check", cwd=shop)
    note, *_, result = done.stdout.splitlines()
    assert (done.returncode, result) == (0, "the settings are valid")
    assert note.startswith("note: --set relay.adaptive is false, but")


def test_check_prints_json(shop: Path) -> None:
    fine = json.loads(pillarbox("config", "check", "--json", cwd=shop).stdout)
    assert (fine["ok"], fine["problems"], len(fine["notes"])) == (True, [], 1)
    wrong = pillarbox("config", "check", "--json", cwd=shop, PILLARBOX_RELAY__LEASE="soon", PILLARBOX_RELAY__NAM="a")
    assert wrong.returncode == 2
    reported = json.loads(wrong.stdout)
    assert (reported["ok"], len(reported["problems"])) == (False, 2)


def test_check_creates_the_configured_objects(shop: Path) -> None:
    with (shop / "pillarbox.toml").open("a") as file:
        file.write('[transports.shop]\nimport = "nowhere:handlers"\n')
    done = pillarbox("config", "check", cwd=shop)
    assert (done.returncode, done.stderr) == (
        2,
        "pillarbox: transports.shop in pillarbox.toml: there is no module 'nowhere'; run the command in the folder of "
        "the application\n",
    )


@pytest.mark.parametrize(("handler", "code"), [("nosuch", 2), ("mailer", 0)])
def test_check_and_doctor_report_a_missing_handler(tmp_path: Path, handler: str, code: int) -> None:
    (tmp_path / "desk.py").write_text(
        "from pillarbox import Handlers\n"
        "handlers = Handlers()\n"
        "handlers.on('*', name='mailer')(lambda event, context: None)\n"
    )
    (tmp_path / "pillarbox.toml").write_text(
        f'[transports.desk]\nimport = "desk:handlers"\n[destinations.mail]\nhandler = "{handler}"\n'
    )
    why = "destinations.mail in pillarbox.toml: there is no handler 'nosuch'; the handlers are mailer"
    done = pillarbox("config", "check", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (code, f"pillarbox: {why}\n" if code else "")
    findings = json.loads(pillarbox("doctor", "--json", cwd=tmp_path).stdout)["findings"]
    [relay] = [one for one in findings if one["check"] == "settings.relay"]
    assert (relay["result"], why in relay["message"]) == (("fail", True) if code else ("pass", False))


def test_invalid_settings_stop_every_command_but_help(shop: Path) -> None:
    (shop / "pillarbox.toml").write_text("[relay]\nbatchsize = 5\n")
    for command in (["relay"], ["status"], ["schema", "check"], ["config", "show"]):
        done = pillarbox(*command, cwd=shop)
        assert (done.returncode, done.stderr) == (
            2,
            "pillarbox: relay.batchsize in pillarbox.toml is not a setting; did you mean relay.batch_size?\n",
        )
    assert pillarbox("relay", "--help", cwd=shop).returncode == 0


def test_the_file_can_be_set_by_option_or_variable(shop: Path) -> None:
    (shop / "other.toml").write_text("[relay]\nname = 'other'\n")
    for options, variables in ((["--config", "other.toml"], {}), ([], {"PILLARBOX_CONFIG": "other.toml"})):
        done = pillarbox(*options, "config", "show", cwd=shop, **variables)
        assert 'relay.name = "other"' in done.stdout
    missing = pillarbox("--config", "nowhere.toml", "status", cwd=shop)
    assert (missing.returncode, missing.stderr.count("\n")) == (2, 1)


def test_a_flag_without_value_is_a_usage_error(shop: Path) -> None:
    done = pillarbox("--set", "relay.name", "config", "show", cwd=shop)
    assert done.returncode == 2
    assert "write KEY=VALUE" in done.stderr


def test_help_has_examples() -> None:
    assert "pillarbox --config shop.toml config check" in pillarbox("config", "--help").stdout
