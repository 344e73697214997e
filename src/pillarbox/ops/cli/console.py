"""`pillarbox console`: serve the web console, and manage its users."""

from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing, closing
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pillarbox.ops.cli.context import current_invocation, current_settings, log_to_stderr
from pillarbox.ops.cli.exits import NotFoundError
from pillarbox.ops.cli.output import as_json, print_json, print_table

if TYPE_CHECKING:
    from pillarbox.ops.console.access import User
    from pillarbox.ops.console.users import UserEntry
    from pillarbox.ops.settings import Settings


@click.group(invoke_without_command=True)
@click.option("--read-only", is_flag=True, help="Serve pages and API without any action.")
@click.option("--listen", metavar="HOST:PORT", help="Address to listen on; default: console.listen.")
@click.pass_context
def console(context: click.Context, read_only: bool, listen: str | None) -> None:
    """Serve the web console until SIGTERM or SIGINT.

    The console shows whether events flow and, if not, why, and has the actions of operators. console.login configures
    the login; without one the console listens on this machine only.

    \b
    Examples:
      pillarbox console user add ada --role admin --payloads
      pillarbox console
      pillarbox --set console.login=none console --read-only
    """
    from pillarbox.ops.cli.store_access import name_default_store, refuse_memory
    from pillarbox.ops.importing import installed

    with installed():
        import_module("pillarbox.ops.console")  # fails early if a package is missing
    if context.invoked_subcommand is not None:
        return

    if listen is not None:
        invocation = current_invocation()
        invocation.flags = {**invocation.flags, "console.listen": listen}
        invocation.spelt = {"console.listen": "--listen"}
    settings = current_settings()
    refuse_memory(settings)
    name_default_store()
    log_to_stderr()
    asyncio.run(_serve(settings, read_only=read_only))


async def _serve(settings: Settings, *, read_only: bool) -> None:
    from pillarbox.ops.cli.signals import stop_on_signals
    from pillarbox.ops.console.from_settings import open_console
    from pillarbox.ops.console.server import ConsoleServer
    from pillarbox.ops.monitor.http_server import address_of, open_port
    from pillarbox.ops.wiring import open_store

    given = settings.console
    async with aclosing(open_store(settings.store, statement_timeout=given.query_timeout)) as store:
        pages = open_console(settings, store, read_only=read_only)
        await store.schema.check()
        with closing(open_port(given.listen, called=settings.called("console", "listen"))) as port:
            service = ConsoleServer(pages, root_path=given.root_path)
            stop_on_signals(service.stop)
            click.echo(f"console: http://{address_of(port)}{given.root_path}/")
            await service.run(port)


@console.group()
def user() -> None:
    """Add, remove and list the users of the console.

    \b
    Examples:
      pillarbox console user add ada --role admin --payloads
      pillarbox console user list
    """


@user.command("add")
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(["viewer", "operator", "admin"]),
    default="viewer",
    show_default=True,
    help="A viewer reads; an operator also acts on events; an admin also forces breakers and sets rate limits.",
)
@click.option("--payloads", is_flag=True, help="Allow the user to see payloads and headers.")
@click.option("--print", "printed", is_flag=True, help="Print the line for PILLARBOX_CONSOLE__USERS only.")
@as_json
def add(name: str, role: str, payloads: bool, printed: bool, as_json: bool) -> None:
    """Add a user to the users file, or change password and role.

    The command asks for the password, or reads the first line of standard input.

    \b
    Example:
      pillarbox console user add ben --role operator
    """
    from pillarbox.ops.console.access import Role, User
    from pillarbox.ops.console.passwords import hashed
    from pillarbox.ops.console.users import UserEntry, check_name, read, write

    user = User(name=check_name(name), role=Role.of(role), payloads=payloads)
    added = UserEntry(user=user, hash=hashed(_password()))
    if printed:
        if as_json:
            print_json({"line": str(added)})
        else:
            click.echo(str(added))
        return
    file = _file()
    users: dict[str, UserEntry] = read(file) if file.exists() else {}
    write(file, users | {name: added})
    if as_json:
        print_json(_as_object(user) | {"changed": name in users})
    else:
        click.echo(f"{'changed' if name in users else 'added'}: {name}, {role}, in {file}")


@user.command("remove")
@click.argument("name")
@as_json
def remove(name: str, as_json: bool) -> None:
    """Remove a user from the users file. Their session ends with the next request.

    \b
    Example:
      pillarbox console user remove ben
    """
    from pillarbox.ops.console.users import read, write

    file = _file()
    users = read(file)
    if name not in users:
        raise NotFoundError(f"there is no user {name!r} in {file}: see `pillarbox console user list`")
    gone = users.pop(name)
    write(file, users)
    if as_json:
        print_json(_as_object(gone.user))
    else:
        click.echo(f"removed: {name}")


@user.command("list")
@as_json
def list_(as_json: bool) -> None:
    """List who may log in.

    \b
    Example:
      pillarbox console user list --json
    """
    from pillarbox.ops.console.users import read

    users = [entry.user for entry in read(_file()).values()]
    if as_json:
        print_json({"users": [_as_object(one) for one in users]})
        return
    print_table(["name", "role", "payloads"], [[p.name, p.role.word, "yes" if p.payloads else "no"] for p in users])


def _as_object(user: User) -> dict[str, object]:
    return {"name": user.name, "role": user.role.word, "payloads": user.payloads}


def _file() -> Path:
    return Path(current_settings().console.users_file)


def _password() -> str:
    if sys.stdin.isatty():
        password: str = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    if len(password) < 8:
        raise click.UsageError("A password has at least 8 characters.")
    return password
