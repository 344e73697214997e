"""Settings of a project for development. DATABASE_URL names another database than the SQLite file."""

import os
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

BASE_DIR = Path(__file__).resolve().parent.parent

SECRET_KEY = os.environ.get("SECRET_KEY", "for development only")
DEBUG = os.environ.get("DEBUG", "1") == "1"
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]

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

ENGINES = {"postgresql": "postgresql", "postgres": "postgresql"}


def database(url: str) -> dict[str, Any]:
    """A database of DATABASES from its URL."""
    parts = urlsplit(url)
    return {
        "ENGINE": f"django.db.backends.{ENGINES[parts.scheme]}",
        "NAME": unquote(parts.path.removeprefix("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": parts.port or "",
    }


SQLITE = {
    "ENGINE": "django.db.backends.sqlite3",
    "NAME": BASE_DIR / "shop.sqlite3",
    # A transaction that begins with a read could not write while the relay does.
    "OPTIONS": {"transaction_mode": "IMMEDIATE"},
    # The relay opens the database, too, so that tests need a file.
    "TEST": {"NAME": BASE_DIR / "test.sqlite3"},
}
DATABASES = {"default": database(os.environ["DATABASE_URL"]) if "DATABASE_URL" in os.environ else SQLITE}

PILLARBOX = {
    "transports": {"shop": {"import": "shop.events:handlers"}},
    "relay": {"retry": {"policy": "exponential", "base": "1s", "max_attempts": 5}},
}

MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
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
ROOT_URLCONF = "project.urls"
STATIC_URL = "static/"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
