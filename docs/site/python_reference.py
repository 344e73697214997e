"""The pages of the Python reference: one for each public module, with every name that it exports."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

FOLDER = "docs/reference/python"
MODULES: Mapping[str, str] = {
    "pillarbox": "The names that applications import.",
    "pillarbox.adapters": "The names that authors of stores, transports and sources import.",
    "pillarbox.console": "The web console as an ASGI application.",
    "pillarbox.observations": "What relays and consumers report to observers.",
    "pillarbox.stores.postgres": "PostgreSQL.",
    "pillarbox.stores.mariadb": "MariaDB.",
    "pillarbox.stores.sqlite": "SQLite.",
    "pillarbox.stores.memory": "A store in the memory of one process, for tests.",
    "pillarbox.transports.rabbitmq": "RabbitMQ.",
    "pillarbox.transports.kafka": "Kafka.",
    "pillarbox.transports.nats": "NATS JetStream.",
    "pillarbox.transports.redis": "Redis Streams.",
    "pillarbox.transports.webhook": "Webhooks, and the verifier for receivers.",
    "pillarbox.transports.handlers": "Handlers in the process of the relay.",
    "pillarbox.transports.stdout": "Standard output, for development.",
    "pillarbox.transports.memory": "A transport in the memory of one process, which fails on command, for tests.",
    "pillarbox.transports.memory_source": "A source in the memory of one process, for tests.",
    "pillarbox.inbox": "Idempotent consumers.",
    "pillarbox.telemetry.logs": "Log lines for the observations of relays.",
    "pillarbox.telemetry.consumer_logs": "Log lines for the observations of consumers.",
    "pillarbox.telemetry.prometheus": "Metrics for Prometheus.",
    "pillarbox.telemetry.opentelemetry": "Traces for OpenTelemetry.",
    "pillarbox.testing": "For the tests of your service.",
    "pillarbox.testing.servers": "PostgreSQL and RabbitMQ for tests, private to one test run.",
    "pillarbox.testing.waiting": "Waiting for a condition instead of a number of seconds.",
    "pillarbox.integrations.django.testing": "A relay for the tests of a Django project.",
}


def public_names(root: Path, module: str) -> list[str]:
    """`__all__` of a module, read without importing it; without one, its public classes and functions."""
    path = root / "src" / Path(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["__all__"]:
            names: list[str] = ast.literal_eval(node.value)
            return [name for name in names if not name.startswith("__")]
    kinds = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    defined = (node.name for node in tree.body if isinstance(node, kinds))
    # Each once: the overloads of a function have its name.
    return [name for name in dict.fromkeys(defined) if not name.startswith("_")]


def integrations(root: Path) -> dict[str, str]:
    """The modules of `pillarbox.integrations`, each with the first line of its docstring."""
    found: dict[str, str] = {}
    for path in sorted((root / "src/pillarbox/integrations").iterdir()):
        file = path / "__init__.py" if path.is_dir() else path
        if path.stem.startswith("_") or file.suffix != ".py" or not file.exists():
            continue
        docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
        found[f"pillarbox.integrations.{path.stem}"] = docstring.partition("\n")[0]
    return found


def pages(root: Path) -> dict[str, str]:
    """Path → text of every page."""
    modules = {**MODULES, **integrations(root)}
    texts: dict[str, str] = {}
    for module, purpose in modules.items():
        entries = "\n\n".join(f"::: {module}.{name}" for name in public_names(root, module))
        texts[f"{FOLDER}/{module}.md"] = f"# {module}\n\n{purpose}\n\n{entries}\n"
    rows = "\n".join(f"| [`{module}`]({module}.md) | {purpose} |" for module, purpose in modules.items())
    texts[f"{FOLDER}/index.md"] = f"# Python reference\n\n| module | contents |\n|---|---|\n{rows}\n"
    return texts
