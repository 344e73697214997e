from pathlib import Path

import pytest

from pillarbox.core.errors import ConfigurationError
from pillarbox.ops.console.access import Role, User
from pillarbox.ops.console.passwords import hashed
from pillarbox.ops.console.users import UserEntry, check_name, parse, read, write

HASH = hashed("secret")


def test_written_users_are_read_back(tmp_path: Path) -> None:
    ada = UserEntry(user=User(name="ada", role=Role.ADMIN, payloads=True), hash=HASH)
    ben = UserEntry(user=User(name="ben@example.com", role=Role.VIEWER), hash=HASH)
    write(tmp_path / "users", {"ada": ada, "ben": ben})
    assert list(read(tmp_path / "users").values()) == [ada, ben]


def test_only_the_owner_may_read_the_file(tmp_path: Path) -> None:
    write(tmp_path / "users", {})
    assert (tmp_path / "users").stat().st_mode & 0o777 == 0o600


def test_comments_and_empty_lines_are_left_out() -> None:
    assert list(parse(f"# users\n\nada:viewer:{HASH}\n", called="here")) == ["ada"]


@pytest.mark.parametrize(
    "line",
    ["ada", "ada:viewer", f"ada:emperor:{HASH}", f"ada:viewer+all:{HASH}", f"a b:viewer:{HASH}", "ada:viewer:pw"],
)
def test_a_wrong_line_is_named_and_never_quoted(line: str) -> None:
    with pytest.raises(ConfigurationError, match="here, line 1: write name:role:hash") as raised:
        parse(line, called="here")
    assert "pw" not in str(raised.value)
    assert HASH not in str(raised.value)


def test_a_name_occurs_once() -> None:
    with pytest.raises(ConfigurationError, match="'ada' occurs twice"):
        parse(f"ada:viewer:{HASH}\nada:admin:{HASH}", called="here")


@pytest.mark.parametrize("name", ["", "a:b", "a\nb", "x" * 65, "<b>"])
def test_a_name_that_would_break_the_file_is_rejected(name: str) -> None:
    with pytest.raises(ConfigurationError, match="is not a valid user name"):
        check_name(name)


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be written"):
        write(tmp_path / "nowhere" / "users", {})
