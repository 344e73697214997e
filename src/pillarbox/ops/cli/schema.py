"""`pillarbox schema`: print the SQL of the tables and of the statements, apply it, check it, show table sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import click

from pillarbox import dialects
from pillarbox.core.errors import ConfigurationError, SchemaError
from pillarbox.core.store import SchemaStatus
from pillarbox.ops.cli.context import current_settings
from pillarbox.ops.cli.output import as_json, clean, print_json, print_table, span
from pillarbox.ops.cli.store_access import refuse_memory, with_shared_store
from pillarbox.ops.formatting import format_bytes
from pillarbox.ops.migration_files import alembic_revision, django_migration
from pillarbox.ops.wiring import grants, open_store
from pillarbox.schemes import scheme_of, store_plugin
from pillarbox.statements import NamedStatement, StatementSet, unknown

with_aliases = click.option("--aliases", is_flag=True, help="Add views for statements written for other outboxes.")


@click.group()
def schema() -> None:
    """Print, apply and check the tables of the store; show their sizes.

    \b
    Examples:
      pillarbox schema apply
      pillarbox schema sql | psql -1 shop
      pillarbox schema status --json
      pillarbox schema sizes
      pillarbox schema statements fetch_ready
    """


@schema.command("sql")
@with_aliases
@click.option(
    "--from",
    "since",
    type=click.IntRange(min=0),
    default=0,
    metavar="VERSION",
    help="Print only the migrations after this version, which the tables have; 0 = no tables.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["plain", "alembic", "django"]),
    default="plain",
    help="plain: a script for the database's shell or for one call of a driver. alembic, django: a migration file.",
)
@click.option(
    "--after",
    metavar="MIGRATION",
    help="The migration that the file follows: an Alembic revision, or APP.NAME of Django. Default: none.",
)
@click.option(
    "--roles",
    metavar="OWNER",
    help="Print the grants for the roles pillarbox_producer, pillarbox_relay, pillarbox_reader and pillarbox_migrator "
    "instead; OWNER owns the tables. PostgreSQL only.",
)
@as_json
def sql(aliases: bool, since: int, format_: str, after: str | None, roles: str | None, as_json: bool) -> None:
    """Print the SQL that `apply` runs, for one transaction of another tool.

    \b
    Examples:
      pillarbox schema sql | psql -1 shop
      pillarbox schema sql --from 1 | psql -1 shop
      pillarbox schema sql --format alembic --after 1975ea83b712 > migrations/versions/outbox.py
      pillarbox schema sql --format django --after shop.0007_price > shop/migrations/0008_outbox.py
    """
    if format_ == "plain" and after is not None:
        raise ConfigurationError("--after belongs to a migration file: add --format alembic or --format django")
    if aliases and format_ != "plain":
        raise ConfigurationError("--aliases: a migration file has no compatibility views; run `schema apply --aliases`")
    if roles is not None and (since or aliases or format_ != "plain"):
        raise ConfigurationError("--roles prints the grants instead of the tables: use it alone")
    refuse_memory(settings := current_settings())
    store = settings.store
    if roles is not None:
        script = grants(store, owner=roles)
    else:
        opened = open_store(store).schema
        match format_:
            case "alembic":
                script = alembic_revision(opened, prefix=store.tables.prefix, since=since, after=after)
            case "django":
                script = django_migration(opened, since=since, after=after)
            case _:
                script = opened.sql(since=since, aliases=aliases)
    if as_json:
        print_json({"sql": script})
    else:
        click.echo(script, nl=False)


@schema.command("apply")
@with_aliases
@as_json
def apply(aliases: bool, as_json: bool) -> None:
    """Create or migrate the tables. Idempotent, and safe from several processes at once."""
    ran = with_shared_store(lambda store: store.schema.apply(aliases=aliases))
    if as_json:
        print_json({"applied": ran})
    else:
        click.echo(f"applied {', '.join(ran)}" if ran else "the tables are up to date")


@schema.command("check")
@as_json
def check(as_json: bool) -> None:
    """Verify the tables; exit with 1 and say what to do if they are not current."""
    with_shared_store(lambda store: store.schema.check())
    if as_json:
        print_json({"ok": True})
    else:
        click.echo("the tables are valid and up to date")


@schema.command("status")
@as_json
def status(as_json: bool) -> None:
    """Show the installed and the required version, pending migrations and problems."""
    found = with_shared_store(lambda store: store.schema.status())
    if as_json:
        print_json(_as_object(found))
    else:
        click.echo(_sentence(found))


@schema.command("sizes")
@as_json
def sizes(as_json: bool) -> None:
    """Show the size of each table, its dead rows, and the oldest open transaction.

    Row counts are estimates of the database. SQLite reports only the file: used pages, free pages, and the write-ahead
    log.

    \b
    Examples:
      pillarbox schema sizes
      pillarbox schema sizes --json
    """
    from pillarbox.ops import exports

    found = with_shared_store(lambda store: store.diagnosis.table_sizes())
    if as_json:
        print_json(exports.table_sizes(found))
        return
    print_table(
        ["table", "rows", "dead rows", "size"],
        [[part.name, _about(part.rows), _about(part.dead_rows), format_bytes(part.bytes)] for part in found.parts],
    )
    if (oldest := found.oldest) is not None:
        click.echo(
            f"oldest open transaction: pid {oldest.pid} ({clean(oldest.user)}, {clean(oldest.application)}, "
            f"{oldest.state}) for {span(oldest.seconds)}: {clean(oldest.query)}"
        )


@schema.command("statements")
@click.argument("name", required=False)
@as_json
def statements(name: str | None, as_json: bool) -> None:
    """Print an SQL statement as it is sent; without NAME, list the statements.

    NAME+VARIANT prints a variant, for example fetch_ready+in_range. Where the text depends on the call, such as the
    numbers of lanes on MariaDB, the command prints an example. The statements of `record` and of the inbox are
    included.

    \b
    Examples:
      pillarbox schema statements
      pillarbox schema statements fetch_ready
      pillarbox schema statements deliver+ledger --json
    """
    found = _statements()
    if name is None:
        _list_statements([statement for statement, _ in found.values()], as_json=as_json)
        return
    plain, *variants = name.split("+")
    if plain not in found:
        raise ConfigurationError(unknown(plain, list(found)))
    statement, source = found[plain]
    try:
        sql = source.shown(plain, *variants)
    except LookupError as error:
        raise ConfigurationError(str(error)) from None
    if as_json:
        print_json({**_described(statement), "sql": sql})
    else:
        click.echo(sql)


def _statements() -> dict[str, tuple[NamedStatement, StatementSet]]:
    """Name → statement and where it comes from: the store, `record` or the inbox."""
    settings = current_settings().store
    own = open_store(settings).schema.statements()
    if own is None:
        raise ConfigurationError("the memory store sends no SQL; set PILLARBOX_STORE to the URL of a database")
    found = {statement.name: (statement, own) for statement in own.listed()}
    if dialect := store_plugin(scheme_of(settings.url)).dialect:
        more = dialects.find(dialect).statements(own.names)
        for statement in more.listed():
            found[statement.name] = replace(statement, theme=statement.theme.removesuffix(f"_{dialect}")), more
    return found


def _list_statements(statements: Sequence[NamedStatement], *, as_json: bool) -> None:
    if as_json:
        print_json({"statements": [_described(statement) for statement in statements]})
        return
    print_table(
        ["name", "theme", "purpose", "variants"],
        [[one.name, one.theme, one.purpose, " ".join(one.variants)] for one in statements],
    )


def _described(statement: NamedStatement) -> dict[str, object]:
    return {
        "name": statement.name,
        "theme": statement.theme,
        "purpose": statement.purpose,
        "variants": list(statement.variants),
    }


def _about(rows: int | None) -> str:
    return "" if rows is None else f"~{rows:,}"


def _as_object(status: SchemaStatus) -> dict[str, object]:
    return {
        "ok": status.ok,
        "version": status.version,
        "required": status.required,
        "pending": list(status.pending),
        "problems": list(status.problems),
    }


def _sentence(status: SchemaStatus) -> str:
    if status.version == 0:
        return f"the tables do not exist yet: run `{SchemaError.command}`"
    lines = [f"version {status.version} of {status.required}"]
    lines += [f"pending: {name}" for name in status.pending]
    lines += [f"problem: {problem}" for problem in status.problems]
    return "\n".join(lines)
