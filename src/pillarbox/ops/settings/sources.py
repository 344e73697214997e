"""The places that values come from: a file, the environment, flags. Names are matched here; values are checked later.

Every variable that begins with PILLARBOX_ must be a setting: a misspelt name is an error, never a silent default.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path as File
from typing import Any, cast

from pillarbox.core.errors import ConfigurationError
from pillarbox.ops.settings.masking import masked
from pillarbox.ops.settings.origin import Given, Origin, Path, dotted
from pillarbox.ops.settings.suggesting import nearest_key, nearest_variable
from pillarbox.ops.settings.tables import keys_of, parts_of
from pillarbox.ops.settings.transports import TRANSPORTS
from pillarbox.settings import Setting

PREFIX = "PILLARBOX_"
STORE = "PILLARBOX_STORE"
TRANSPORT = "PILLARBOX_TRANSPORT"
DATABASE_URL = "DATABASE_URL"
CONFIG = "PILLARBOX_CONFIG"
FAILPOINT = "PILLARBOX_FAILPOINT"
TEST_SERVERS = "PILLARBOX_TEST_SERVERS"
"""Read by the pytest plugin, whose tests may run commands."""
FROM_FILE = "_FILE"
USUAL_FILE = "pillarbox.toml"

Report = Callable[[str], None]
"""Takes a problem, so that all problems are reported at once."""


def find_file(option: str | None, environment: Mapping[str, str]) -> File | None:
    """The settings file: the one named by `--config` or PILLARBOX_CONFIG, else `pillarbox.toml` here if it exists."""
    if named := option or environment.get(CONFIG):
        return File(named)
    return File(USUAL_FILE) if File(USUAL_FILE).exists() else None


def read_file(file: File) -> dict[str, Any]:
    """Raises ConfigurationError, which never quotes the file: it may hold a password."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"the settings file {file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"the settings file {file} is not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"the settings file {file} is not TOML: {error}") from None
    except ValueError:
        raise ConfigurationError(f"the settings file {file} has a number with too many digits") from None
    except RecursionError:
        raise ConfigurationError(f"the settings file {file} is nested too deeply") from None


def from_environment(
    root: type[Any], environment: Mapping[str, str], written: Mapping[str, Any], report: Report
) -> dict[Path, Given]:
    """The values of variables; an empty one counts as not set. `written` is the file, to whose names they refer."""
    found: dict[Path, Given] = {}
    for variable, text in sorted(environment.items()):
        if not variable.startswith(PREFIX) or variable in (CONFIG, FAILPOINT, TEST_SERVERS) or not text:
            continue
        try:
            path, given = _from_variable(root, variable, text, written)
        except ConfigurationError as error:
            report(str(error))
            continue
        if path in found:
            report(f"{found[path].origin.name} and {variable} both set {dotted(path)}: leave one of them out")
        found[path] = given
    return found


def usual_store(environment: Mapping[str, str]) -> dict[Path, Given]:
    """The store that DATABASE_URL names, for applications that have that variable anyway."""
    text = environment.get(DATABASE_URL, "")
    return {("store", "url"): Given(text, Origin("environment", DATABASE_URL), is_text=True)} if text else {}


def from_flags(
    root: type[Any], flags: Mapping[str, str], spelt: Mapping[str, str], report: Report
) -> dict[Path, Given]:
    """The values of flags, by dotted name; `spelt` has the option of a name that was not given as `--set`."""
    found: dict[Path, Given] = {}
    for name, text in flags.items():
        path, flag = tuple(name.split(".")), spelt.get(name, f"--set {name}")
        known = _find(root, path)
        if known is None:
            report(f"{flag} is not a setting{nearest_key(root, path)}")
        elif known.secret and masked(text) != text:
            report(
                f"{flag} contains a password, and every user of this machine can read the command line: "
                f"put the URL into {variable_of(path)}{FROM_FILE} or {variable_of(path)}"
            )
        else:
            found[path] = Given(text, Origin("flag", flag), is_text=True)
    return found


def variable_of(path: Path) -> str:
    """The environment variable of a setting."""
    return PREFIX + "__".join(name.upper() for name in path)


def _from_variable(root: type[Any], variable: str, text: str, written: Mapping[str, Any]) -> tuple[Path, Given]:
    origin = Origin("environment", variable)
    plain = variable.removesuffix(FROM_FILE)
    if plain in (STORE, TRANSPORT):
        text = text if plain == variable else _secret(variable, text)
        if plain == STORE:
            return ("store", "url"), Given(text, origin, is_text=True)
        return _transport(text, origin, written)
    path = _named_as_written(tuple(variable.removeprefix(PREFIX).lower().split("__")), written)
    if _find(root, path) is not None:
        return path, Given(text, origin, is_text=True)
    path = (*path[:-1], path[-1].removesuffix(FROM_FILE.lower()))
    if (known := _find(root, path)) is not None and known.secret:
        return path, Given(_secret(variable, text), origin, is_text=True)
    raise ConfigurationError(f"{variable} is not a setting{nearest_variable(root, variable, path)}")


def _transport(text: str, origin: Origin, written: Mapping[str, Any]) -> tuple[Path, Given]:
    """The short form: the only transport of the file, else one named `default`."""
    names = list(written.get("transports", {})) if isinstance(written.get("transports", {}), Mapping) else []
    if len(names) > 1:
        variable = variable_of(("transports", names[0], "url"))
        raise ConfigurationError(f"{origin.name}: the file has several transports; set one of them, as in {variable}")
    name = names[0] if names else "default"
    scheme, _, rest = text.partition(":")
    if scheme != "handlers":
        return ("transports", name, "url"), Given(text, origin, is_text=True)
    if ":" not in rest:
        raise ConfigurationError(f"{origin.name}: write handlers:MODULE:OBJECT, as in handlers:shop.events:handlers")
    return ("transports", name, "import"), Given(rest, origin, is_text=True)


def _secret(variable: str, file: str) -> str:
    try:
        return File(file).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigurationError(f"{variable}: {file} cannot be read: {why}") from None


def _named_as_written(path: Path, written: Any) -> Path:
    """The path with the names of the file: a variable has neither case nor hyphens."""
    found: list[str] = []
    for name in path:
        if isinstance(written, Mapping):
            table = cast("Mapping[str, Any]", written)
            name = next((one for one in table if one.lower().replace("-", "_").replace(".", "_") == name), name)
            written = table.get(name)
        found.append(name)
    return tuple(found)


def _find(section: type[Any], path: Path) -> Setting | None:
    """The setting at a path; None in lists, which only a file can hold."""
    if len(path) == 1:
        return keys_of(section).get(path[0])
    inner = parts_of(section).get(path[0]) if path else None
    if inner is None or inner.shape == "listed":
        return None
    return _find(inner.section, path[2:] if inner.shape == "named" else path[1:])


def no_transport(file: str) -> str:
    """What to do if the settings name no transport; file: what they were read from, '' if there is none."""
    where = f"{file} has no transports" if file else "there is no settings file"
    return f"{TRANSPORT} is not set, and {where}, so events cannot be sent: set it to {TRANSPORTS}"
