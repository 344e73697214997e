import subprocess

import pytest

from pillarbox.ops.console.command_line import command, quoted


@pytest.mark.parametrize("text", ["plain", "two words", "it's", "a\u202eb", "tab\tand\nline", "\\'\x1b[31m", "ä\u200e"])
def test_arguments_are_quoted_for_the_shell(text: str) -> None:
    shown = quoted(text)
    assert shown.isprintable()
    done = subprocess.run(["bash", "-c", f"printf %s {shown}"], capture_output=True, check=True)
    assert done.stdout.decode() == text


def test_an_id_is_never_an_option() -> None:
    assert command("dead retry", "-rf", {"type": "order.placed"}) == "pillarbox dead retry --type order.placed -- -rf"
    assert command("events show", "e1") == "pillarbox events show e1"
