"""A project on the database of DATABASE_URL, with prefix and schema of PREFIX and SCHEMA."""

import os
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

BASE_DIR = Path(__file__).resolve().parent
SECRET_KEY = "for tests"
DEBUG = os.environ.get("DEBUG") == "1"
ALLOWED_HOSTS = ["127.0.0.1", "testserver"]
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "pillarbox.integrations.django",
    "shop",
]


def database(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    return {
        "ENGINE": f"django.db.backends.{'mysql' if parts.scheme == 'mariadb' else 'postgresql'}",
        "NAME": unquote(parts.path.removeprefix("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": parts.port or "",
    }


def file(name: str) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": BASE_DIR / f"{name}.sqlite3",
        "OPTIONS": {"transaction_mode": "IMMEDIATE"},
        "TEST": {"NAME": BASE_DIR / f"test_{name}.sqlite3"},
    }


DATABASES: dict[str, Any] = {
    "default": database(os.environ["DATABASE_URL"]) if "DATABASE_URL" in os.environ else file("shop"),
    "second": file("second"),
}
if DATABASES["default"]["ENGINE"].endswith("mysql"):
    import pymysql

    # Django asks for the version of mysqlclient, whose interface PyMySQL has.
    pymysql.version_info = (2, 2, 1, "final", 0)
    pymysql.install_as_MySQLdb()

PILLARBOX: dict[str, Any] = {
    "store": {"prefix": os.environ.get("PREFIX", "outbox_"), "schema": os.environ.get("SCHEMA", "public")},
    "transports": {"shop": {"import": "shop.events:handlers"}},
    "relay": {"retry": {"policy": "none"}},
    "logging": {"events": True},
    "console": {"mask": ["$.card", "header:authorization"]},
}
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
ROOT_URLCONF = "urls"
STATIC_URL = "static/"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
