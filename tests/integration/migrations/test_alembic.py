"""Real Alembic projects: our tables survive autogenerate, and migrate up and down within revisions."""

import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import MetaData, Table

from pillarbox.integrations.alembic import include_object
from tests.integration.migrations.alembic_project import DRIVERS, AlembicProject
from tests.integration.migrations.catalog import catalog
from tests.integration.migrations.database import ALIASES, apply, execute, printed, psql, status, with_driver
from tests.servers.mariadb import MariaDBServer

OTHER_TABLES = "tables=TableNames(prefix='Shop_', schema='Sales')"


@pytest.mark.parametrize("driver", DRIVERS)
def test_autogenerate_follows_the_models_and_keeps_the_outbox(
    driver: str, empty_postgres_url: str, folder: Path
) -> None:
    url = empty_postgres_url
    apply(url, aliases=True)
    execute(url, "INSERT INTO outbox_message (event_type, payload) VALUES ('order.placed', '{}')")
    execute(url, "CREATE TABLE outbox_of_the_users_own (id int)")
    before = catalog(url, "outbox_", "event_outbox", "processed_event", without=("outbox_of_the_users_own",))
    assert len(before) > 50
    project = AlembicProject(folder, with_driver(url, driver))
    project.alembic("revision", "--autogenerate", "-m", "first")
    project.alembic("upgrade", "head")
    assert execute(url, "SELECT count(*) FROM orders") == [(0,)]
    # A table of the user that only looks like ours is still theirs.
    assert execute(url, "SELECT to_regclass('outbox_of_the_users_own') IS NULL") == [(True,)]
    assert catalog(url, "outbox_", "event_outbox", "processed_event") == before
    assert execute(url, "SELECT event_type FROM outbox_message") == [("order.placed",)]


def test_a_model_with_the_name_of_an_alias_belongs_to_the_application() -> None:
    for name in ("processed_event", "event_outbox", "event_outbox_archive"):
        model = Table(name, MetaData())
        assert include_object(model, name, "table", False, None)
        assert include_object(model, name, "table", False, model)
        assert not include_object(model, name, "table", True, None), "autogenerate would drop it"
    assert not include_object(Table("outbox_message", MetaData()), "outbox_message", "table", False, None)


def test_autogenerate_without_the_filter_would_drop_the_outbox(empty_postgres_url: str, folder: Path) -> None:
    apply(empty_postgres_url)
    project = AlembicProject(folder, with_driver(empty_postgres_url, "postgresql+psycopg"), filtered=False)
    project.alembic("revision", "--autogenerate", "-m", "first")
    [revision] = project.versions.glob("*.py")
    assert "op.drop_table('outbox_message')" in revision.read_text(encoding="utf-8")


@pytest.mark.parametrize("driver", DRIVERS)
def test_revisions_migrate_up_and_down_in_steps(
    driver: str, postgres_url: str, empty_postgres_url: str, folder: Path
) -> None:
    url = empty_postgres_url
    project = AlembicProject(folder, with_driver(url, driver))
    project.add("one", upgrade='op.pillarbox_upgrade("0001")', downgrade='op.pillarbox_downgrade("base")')
    project.add("two", upgrade='op.pillarbox_upgrade("0002", since="0001")', downgrade='op.pillarbox_downgrade("0001")')
    project.alembic("upgrade", "one")
    assert status(url).version == 1
    project.alembic("upgrade", "head")
    assert status(url).ok
    assert catalog(url, "outbox_") == catalog(postgres_url, "outbox_", without=ALIASES)
    execute(url, "SELECT outbox_record('order.placed', '{}')")
    project.alembic("downgrade", "one")
    assert status(url).version == 1
    with pytest.raises(psycopg.errors.UndefinedFunction):
        execute(url, "SELECT outbox_record('order.placed', '{}')")
    refused = project.attempt("downgrade", "base")
    assert refused.returncode != 0
    assert "events are pending" in refused.stderr
    assert execute(url, "SELECT count(*) FROM outbox_message") == [(1,)]
    execute(url, "DELETE FROM outbox_message")
    project.alembic("downgrade", "base")
    assert [name for name in catalog(url, "") if "alembic_version" not in name] == []
    # Tables that `schema apply` has created need nothing more.
    apply(url)
    project.alembic("upgrade", "head")
    assert status(url).ok


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_printed_revision_migrates_up_and_down(
    driver: str, postgres_url: str, empty_postgres_url: str, folder: Path
) -> None:
    url = empty_postgres_url
    project = AlembicProject(folder, with_driver(url, driver))
    (project.versions / "outbox.py").write_text(printed(url, "--format", "alembic"), encoding="utf-8")
    project.alembic("upgrade", "head")
    assert status(url).ok
    assert catalog(url, "outbox_") == catalog(postgres_url, "outbox_", without=ALIASES)
    project.alembic("downgrade", "base")
    assert status(url).version == 0


def test_printed_revisions_follow_each_other(empty_postgres_url: str, folder: Path) -> None:
    url = empty_postgres_url
    project = AlembicProject(folder, with_driver(url, "postgresql+psycopg"))
    project.add("one", upgrade='op.pillarbox_upgrade("0001")', downgrade='op.pillarbox_downgrade("base")')
    text = printed(url, "--format", "alembic", "--from", "1", "--after", "one")
    (project.versions / "outbox.py").write_text(text, encoding="utf-8")
    project.alembic("upgrade", "head")
    assert status(url).ok
    project.alembic("downgrade", "one")
    assert status(url).version == 1


def test_offline_mode_prints_a_script_for_one_transaction(
    postgres_url: str, empty_postgres_url: str, folder: Path
) -> None:
    url = empty_postgres_url
    project = AlembicProject(folder, with_driver(url, "postgresql+asyncpg"))
    project.add("one", upgrade='op.pillarbox_upgrade("0001")', downgrade='op.pillarbox_downgrade("base", since="0001")')
    project.add("two", upgrade='op.pillarbox_upgrade("0002", since="0001")', downgrade='op.pillarbox_downgrade("0001")')
    psql(url, project.alembic("upgrade", "head", "--sql"))
    assert status(url).ok
    assert catalog(url, "outbox_") == catalog(postgres_url, "outbox_", without=ALIASES)
    psql(url, project.alembic("downgrade", "two:base", "--sql"))
    assert status(url).version == 0


def test_a_failed_revision_leaves_nothing(empty_postgres_url: str, folder: Path) -> None:
    project = AlembicProject(folder, with_driver(empty_postgres_url, "postgresql+psycopg"))
    project.add("one", upgrade='op.pillarbox_upgrade("0002"); op.execute("SELECT 1 / 0")', downgrade="pass")
    assert "division by zero" in project.attempt("upgrade", "head").stderr
    assert status(empty_postgres_url).version == 0


@pytest.mark.parametrize(
    ("call", "reported"),
    [
        ('op.pillarbox_upgrade("0099")', "no schema version 99"),
        ('op.pillarbox_upgrade("head")', "'head' is not a schema version"),
        ('op.pillarbox_downgrade("0099")', "no schema version 99"),
    ],
)
def test_an_unknown_version_is_an_error_before_anything_runs(
    call: str, reported: str, empty_postgres_url: str, folder: Path
) -> None:
    project = AlembicProject(folder, with_driver(empty_postgres_url, "postgresql+psycopg"))
    project.add("one", upgrade=call, downgrade="pass")
    assert reported in project.attempt("upgrade", "head").stderr
    assert status(empty_postgres_url).version == 0


def test_another_prefix_and_schema(empty_postgres_url: str, folder: Path) -> None:
    url = empty_postgres_url
    project = AlembicProject(folder, with_driver(url, "postgresql+psycopg"))
    imported = "from pillarbox import TableNames; "
    project.add(
        "one",
        upgrade=f'{imported}op.pillarbox_upgrade("0002", {OTHER_TABLES})',
        downgrade=f'{imported}op.pillarbox_downgrade("base", {OTHER_TABLES}, discard_pending=True)',
    )
    project.alembic("upgrade", "head")
    execute(url, "SELECT \"Sales\".\"Shop_record\"('order.placed', '{}')")
    environment = project.folder / "migrations" / "env.py"
    text = environment.read_text(encoding="utf-8").replace(
        "from pillarbox.integrations.alembic import include_object",
        "from pillarbox import TableNames\nfrom pillarbox.integrations.alembic import exclude_outbox\n"
        "include_object = exclude_outbox(TableNames(prefix='Shop_', schema='Sales'))",
    )
    environment.write_text(
        text.replace("include_object=include_object", "include_object=include_object, include_schemas=True")
    )
    project.alembic("revision", "--autogenerate", "-m", "first")
    project.alembic("upgrade", "head")
    assert execute(url, 'SELECT event_type FROM "Sales"."Shop_message"') == [("order.placed",)]
    assert execute(url, "SELECT count(*) FROM orders") == [(0,)]
    project.alembic("downgrade", "base")
    assert execute(url, 'SELECT to_regclass(\'"Sales"."Shop_message"\') IS NULL') == [(True,)]


@pytest.mark.parametrize("engine", ["mariadb", "sqlite"])
def test_revisions_migrate_other_engines(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path, folder: Path
) -> None:
    url, driver = f"sqlite:///{tmp_path / 'shop.db'}", "sqlite"
    if engine == "mariadb":
        url, driver = request.getfixturevalue("empty_mariadb_url"), "mariadb+pymysql"
    project = AlembicProject(folder, with_driver(url, driver))
    project.add("one", upgrade='op.pillarbox_upgrade("0001")', downgrade='op.pillarbox_downgrade("base")')
    project.add("two", upgrade='op.pillarbox_upgrade("0002")', downgrade='op.pillarbox_downgrade("0001")')
    project.alembic("upgrade", "head")
    assert status(url).ok
    project.alembic("revision", "--autogenerate", "-m", "first")
    project.alembic("upgrade", "head")
    assert status(url).ok
    project.alembic("downgrade", "two")
    insert(project, "INSERT INTO outbox_message (event_type, payload) VALUES ('a', '{}')")
    refused = project.attempt("downgrade", "base")
    assert "events are pending" in refused.stderr
    insert(project, "DELETE FROM outbox_message")
    project.alembic("downgrade", "base")
    assert status(url).version == 0


def test_offline_mode_prints_a_script_for_the_mariadb_shell(
    empty_mariadb_url: str, mariadb_server: MariaDBServer, folder: Path
) -> None:
    url = empty_mariadb_url
    project = AlembicProject(folder, with_driver(url, "mariadb+pymysql"))
    project.add("one", upgrade='op.pillarbox_upgrade("0002")', downgrade='op.pillarbox_downgrade("base")')
    shell = ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{mariadb_server.port}", "-uroot", url.rpartition("/")[2]]
    up, down = project.alembic("upgrade", "head", "--sql"), project.alembic("downgrade", "one:base", "--sql")
    for script, version in ((up, 2), (down, 0)):
        subprocess.run(shell, input=script, text=True, check=True, capture_output=True)
        assert status(url).version == version


def insert(project: AlembicProject, statement: str) -> None:
    """Run a statement in a connection of the project's engine."""
    script = (
        "import configparser, sqlalchemy as sa; c = configparser.ConfigParser(interpolation=None);"
        "c.read('alembic.ini');"
        "e = sa.create_engine(c['alembic']['sqlalchemy.url']);"
        f"k = e.connect(); k.exec_driver_sql({statement!r}); k.commit()"
    )
    subprocess.run([sys.executable, "-c", script], cwd=project.folder, check=True, capture_output=True)
