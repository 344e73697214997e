"""A command without a store in its settings says which file it uses; DATABASE_URL names another."""

from pathlib import Path

from tests.integration.cli.conftest import Stock
from tests.integration.cli.running import pillarbox


def test_a_command_names_the_file_that_it_uses_by_default(tmp_path: Path) -> None:
    applied = pillarbox("schema", "apply", cwd=tmp_path)
    status = pillarbox("status", "--json", cwd=tmp_path)
    assert (tmp_path / "pillarbox.db").exists()
    for done in (applied, status):
        assert done.returncode == 0, done.stderr
        assert done.stderr.count(str(tmp_path / "pillarbox.db")) == 1
        assert "PILLARBOX_STORE" in done.stderr


def test_database_url_is_the_store_and_nothing_is_said_about_a_file(stock: Stock, tmp_path: Path) -> None:
    url = stock.url.replace("postgresql://", "postgresql+asyncpg://").replace("sqlite://", "sqlite+aiosqlite://")
    done = pillarbox("status", "--json", cwd=tmp_path, DATABASE_URL=url)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert not (tmp_path / "pillarbox.db").exists()
