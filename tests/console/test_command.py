"""`pillarbox console`: rejected settings, users, and shutdown."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.console.serving import serving
from tests.integration.cli.conftest import Stock
from tests.integration.cli.running import environment, pillarbox
from tests.servers.ports import free_port, is_open
from tests.servers.waiting import wait_until

PASSWORD = "correct horse"


def add(folder: Path, name: str, *more: str, password: str = PASSWORD) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pillarbox", "console", "user", "add", name, *more],
        env=environment({}),
        cwd=folder,
        input=f"{password}\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_users_are_added_changed_listed_and_removed(tmp_path: Path) -> None:
    assert add(tmp_path, "ada", "--role", "admin", "--payloads").stdout == "added: ada, admin, in pillarbox.users\n"
    assert add(tmp_path, "ben").stdout == "added: ben, viewer, in pillarbox.users\n"
    assert add(tmp_path, "ben", "--role", "operator").stdout == "changed: ben, operator, in pillarbox.users\n"
    listed = pillarbox("console", "user", "list", cwd=tmp_path)
    assert listed.stdout.splitlines() == ["name\trole\tpayloads", "ada\tadmin\tyes", "ben\toperator\tno"]
    assert pillarbox("console", "user", "remove", "ben", cwd=tmp_path).returncode == 0
    assert pillarbox("console", "user", "remove", "ben", cwd=tmp_path).returncode == 4
    reported = pillarbox("console", "user", "list", "--json", cwd=tmp_path).stdout
    assert reported == '{"users": [{"name": "ada", "role": "admin", "payloads": true}]}\n'


def test_a_password_is_neither_printed_nor_stored(tmp_path: Path) -> None:
    done = add(tmp_path, "ada", password="unforgettable")
    assert "unforgettable" not in done.stdout + done.stderr + (tmp_path / "pillarbox.users").read_text()


@pytest.mark.parametrize(
    ("name", "password", "said"),
    [("ada", "short", "at least 8 characters"), ("a:b", PASSWORD, "is not a valid user name")],
)
def test_an_invalid_user_is_rejected(tmp_path: Path, name: str, password: str, said: str) -> None:
    done = add(tmp_path, name, password=password)
    assert done.returncode == 2
    assert said in done.stderr
    assert not (tmp_path / "pillarbox.users").exists()


def test_users_of_a_variable_need_no_file(shop: Stock, tmp_path: Path) -> None:
    line = add(tmp_path, "ada", "--role", "operator", "--print").stdout
    with serving(shop.url, tmp_path, PILLARBOX_CONSOLE__USERS=line) as base:
        assert httpx.get(f"{base}/api/v1/status").status_code == 401
        assert httpx.get(f"{base}/api/v1/status", auth=("ada", PASSWORD)).status_code == 200


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({}, "there is no users file pillarbox.users: create it with `pillarbox console user add NAME --role admin`"),
        ({"LOGIN": "none", "LISTEN": "0.0.0.0:8980"}, "without a login the console listens on loopback only"),
        ({"LOGIN": "none", "LISTEN": "[::]:8980"}, "without a login the console listens on loopback only"),
        (
            {"LOGIN": "none", "LISTEN": "shop.example.com:80"},
            "without a login the console listens on loopback only",
        ),
        ({"LOGIN": "magic"}, "console.login is 'magic': write file, proxy, none, or MODULE:OBJECT"),
        ({"LOGIN": "nowhere:login"}, "there is no module 'nowhere'"),
        ({"LOGIN": "os:sep"}, "os:sep is a str"),
        ({"LOGIN": "proxy"}, "a login by proxy needs the addresses of that proxy"),
        ({"LOGIN": "none", "MASK": "email"}, "console.mask: 'email' is not a rule"),
        ({"USERS": "ada:admin:secret"}, "console.users, line 1: write name:role:hash"),
    ],
)
def test_invalid_settings_are_rejected_at_the_start(
    shop: Stock, tmp_path: Path, variables: dict[str, str], said: str
) -> None:
    given = {f"PILLARBOX_CONSOLE__{name}": value for name, value in variables.items()}
    done = pillarbox("console", cwd=tmp_path, PILLARBOX_STORE=shop.url, **given)
    assert done.returncode == 2
    assert said in done.stderr
    assert "secret" not in done.stderr


def test_a_port_in_use_is_reported(shop: Stock, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        done = pillarbox(
            "--set", "console.login=none", "console", "--listen", listen, cwd=tmp_path, PILLARBOX_STORE=shop.url
        )
    assert done.returncode == 2
    assert f"--listen: cannot listen on {listen}" in done.stderr


def test_missing_tables_are_reported_at_the_start(tmp_path: Path) -> None:
    done = pillarbox(
        "--set", "console.login=none", "console", cwd=tmp_path, PILLARBOX_STORE=f"sqlite:///{tmp_path / 'new.db'}"
    )
    assert done.returncode == 1
    assert "pillarbox schema apply" in done.stderr


def test_a_signal_stops_the_console_despite_live_connections(shop: Stock, tmp_path: Path) -> None:
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "pillarbox", "--set", "console.login=none", "console", "--listen", f"127.0.0.1:{port}"],
        env=environment({"PILLARBOX_STORE": shop.url}),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: is_open(port), bound=90, what="the console listens")
    with httpx.stream("GET", f"http://127.0.0.1:{port}/live") as watching:
        lines = watching.iter_lines()
        wait_until(lambda: next(lines).startswith("data: "), bound=90, what="numbers come")
        process.send_signal(signal.SIGTERM)
        for _ in lines:
            pass
    said, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (0, "")
    assert said == f"console: http://127.0.0.1:{port}/\n"


def test_a_proxy_may_strip_the_prefix(shop: Stock, tmp_path: Path) -> None:
    given = {"PILLARBOX_CONSOLE__LOGIN": "none", "PILLARBOX_CONSOLE__ROOT_PATH": "/outbox"}
    with serving(shop.url, tmp_path, **given) as base:
        page = httpx.get(f"{base}/events").text
        assert 'href="/outbox/event?id=dead1' in page
        assert httpx.get(f"{base}/static/console.css").status_code == 200
