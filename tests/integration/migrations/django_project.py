"""A project of Django in a folder of its own, for one database."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

OUTBOX_APPS = ("django.contrib.contenttypes", "django.contrib.auth", "pillarbox.integrations.django")
"""What a project installs for the tables; auth keeps the permissions of the admin."""

SETTINGS = """
SECRET_KEY = "x"
INSTALLED_APPS = {apps!r}
USE_TZ = True
DATABASES = {{"default": {database!r}}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
PILLARBOX = {{"transports": {{"shop": {{"import": "shop_handlers:handlers"}}}}}}
"""

MODELS = """
from django.db import models

class Order(models.Model):
    note = models.CharField(max_length=50)
"""

PYMYSQL = """
import pymysql

pymysql.version_info = (2, 2, 1, "final", 0)
pymysql.install_as_MySQLdb()
"""


class DjangoProject:
    """A project whose application `shop` has a model, and whose settings name the database."""

    def __init__(self, folder: Path, url: str, *, apps: Sequence[str] = (), python: str = sys.executable) -> None:
        self.migrations = folder / "shop" / "migrations"
        self._folder = folder
        self._python = python
        self.migrations.mkdir(parents=True, exist_ok=True)
        for package in ("shop", "shop/migrations"):
            (folder / package / "__init__.py").touch()
        (folder / "shop" / "models.py").write_text(MODELS, encoding="utf-8")
        settings = SETTINGS.format(apps=[*apps, "shop"], database=_database(url))
        (folder / "config.py").write_text(settings, encoding="utf-8")
        if url.startswith("mariadb"):
            (folder / "sitecustomize.py").write_text(PYMYSQL, encoding="utf-8")

    def manage(self, *arguments: str) -> str:
        """Run a command, which must succeed; returns its output."""
        variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PILLARBOX"))}
        path = os.pathsep.join([str(self._folder), str(self._folder.parent)])
        ran = subprocess.run(
            [self._python, "-m", "django", *arguments],
            cwd=self._folder,
            env={**variables, "DJANGO_SETTINGS_MODULE": "config", "PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ran.returncode == 0, f"{arguments}\n{ran.stdout}\n{ran.stderr}"
        return ran.stdout


def _database(url: str) -> dict[str, str]:
    """The entry of DATABASES for a database of the tests."""
    scheme, _, rest = url.partition("://")
    if scheme == "sqlite":
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": rest.removeprefix("/")}
    address, _, name = rest.rpartition("/")
    user, _, server = address.partition("@")
    host, _, port = server.partition(":")
    engine = "mysql" if scheme == "mariadb" else "postgresql"
    return {"ENGINE": f"django.db.backends.{engine}", "NAME": name, "HOST": host, "PORT": port, "USER": user}
