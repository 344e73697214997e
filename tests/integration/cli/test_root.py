"""`pillarbox` itself: fast help, examples, completion."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from pillarbox.ops.cli.root import COMMANDS
from pillarbox.ops.cli.root import pillarbox as root
from tests.integration.cli.running import environment, pillarbox


def commands(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from commands(child, (*path, name))


ALL = dict(commands(root, ()))
LEAVES = [path for path, command in ALL.items() if not isinstance(command, click.Group)]
WITHOUT_JSON = [path for path in LEAVES if path[0] in ("consume", "completion")] + [("dead", "export")]
"""Commands that print nothing, a script, or only JSON."""


def test_help_imports_neither_a_relay_nor_a_table() -> None:
    code = (
        "import sys; from pillarbox.ops.cli import main\n"
        "try: main()\n"
        "except SystemExit: print([m for m in ('asyncio', 'rich', 'pillarbox.relay', 'sqlite3') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "--help"], env=environment({}), capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_summary_of_a_command_starts_its_help(name: str) -> None:
    whole = " ".join((ALL[(name,)].help or "").split())
    assert whole.startswith(COMMANDS[name].rstrip("."))


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_every_command_has_examples(path: tuple[str, ...]) -> None:
    family = [ALL[path[:length]].help or "" for length in range(1, len(path) + 1)]
    assert any(f"pillarbox {' '.join(path)}" in text or f"pillarbox {path[0]}" in text for text in family)


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_option_has_help(path: tuple[str, ...]) -> None:
    options = [one for one in ALL[path].params if isinstance(one, click.Option) and not one.hidden]
    assert [option.opts for option in options if not option.help] == []


@pytest.mark.parametrize("path", [path for path in LEAVES if path not in WITHOUT_JSON], ids=" ".join)
def test_every_command_with_output_has_json(path: tuple[str, ...]) -> None:
    assert "--json" in [name for option in ALL[path].params for name in option.opts]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_is_printed(shell: str) -> None:
    done = pillarbox("completion", shell)
    assert (done.returncode, "_PILLARBOX_COMPLETE" in done.stdout) == (0, True), done.stderr


def test_commands_and_options_are_completed() -> None:
    asked = {"_PILLARBOX_COMPLETE": "bash_complete", "COMP_WORDS": "pillarbox dead re", "COMP_CWORD": "2"}
    code = "import sys; sys.argv[0] = 'pillarbox'; from pillarbox.ops.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(asked), capture_output=True, text=True, check=False
    )
    assert done.stdout == "plain,retry\n"


def test_schema_sql_has_json(sqlite_url: str) -> None:
    done = pillarbox("schema", "sql", "--json", PILLARBOX_STORE=sqlite_url)
    assert "CREATE TABLE" in json.loads(done.stdout)["sql"]


def test_a_misspelt_command_gets_a_suggestion() -> None:
    done = pillarbox("relaay")
    assert done.returncode == 2
    assert "there is no command 'relaay'; did you mean 'relay'?" in done.stderr


@pytest.mark.parametrize("url", ["postgresql://app@127.0.0.1:1/shop", "mariadb://app@127.0.0.1:1/shop"])
def test_a_server_that_does_not_run_gets_a_next_step(url: str) -> None:
    done = pillarbox("status", PILLARBOX_STORE=url)
    assert (done.returncode, "check that the server runs" in done.stderr) == (1, True), done.stderr


@pytest.mark.parametrize("variable", ["PILLARBOX_STORE", "DATABASE_URL"])
def test_the_next_step_names_where_the_address_is(variable: str) -> None:
    done = pillarbox("status", cwd=None, **{"PILLARBOX_STORE": "", variable: "postgresql+asyncpg://app@127.0.0.1:1/x"})
    assert done.stderr.endswith(f"; check that the server runs, and the address in {variable}\n"), done.stderr


def test_the_next_step_names_the_file_of_the_address(tmp_path: Path) -> None:
    (tmp_path / "pillarbox.toml").write_text("[store]\nurl = 'postgresql://app@127.0.0.1:1/x'\n")
    done = pillarbox("status", cwd=tmp_path)
    assert "and the address in " in done.stderr
    assert done.stderr.endswith("pillarbox.toml\n"), done.stderr


def test_a_full_device_is_reported_without_a_traceback() -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "pillarbox", "config", "show"],
            env=environment({}),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, "no space left" in done.stderr, "Traceback" in done.stderr) == (1, True, False), (
        done.stderr
    )


def test_an_argument_that_is_not_text_is_a_usage_error() -> None:
    """Python holds bytes of the command line that it cannot decode as lone surrogates."""
    for arguments in (("events", "list", "--type", "a\udcff"), ("record", "order.placed", '{"name": "\udcff"}')):
        done = pillarbox(*arguments)
        assert done.returncode == 2, done.stderr
        assert "\\udcff" in done.stderr
        assert "is not valid utf-8" in done.stderr
