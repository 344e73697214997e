"""A test run that leaves a server behind fails, even if all its tests pass."""

import pytest

from tests.servers.ports import is_open
from tests.servers.processes import Started, registry, remove_folder


def leaks() -> list[str]:
    """One line for everything that should be gone by now and is not."""
    found: list[str] = []
    for started in registry.processes:
        found += _leaks_of(started)
    found += [f"folder {folder} was not removed" for folder in registry.folders if folder.exists()]
    return found


def end_leaks() -> None:
    """Ends what leaked, once it has been named: the next run must not meet it."""
    for started in registry.processes:
        started.kill()
        started.wait_gone(bound=90)
    registry.processes.clear()
    for folder in list(registry.folders):
        if folder.exists():
            remove_folder(folder)


def report(session: pytest.Session) -> None:
    """Fails the session if anything leaked."""
    found = leaks()
    if not found:
        return
    print("\n" + "\n".join(f"LEAK: {line}" for line in found))
    end_leaks()
    session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _leaks_of(started: Started) -> list[str]:
    found = []
    if started.running:
        found.append(f"{started.name} still runs with pid {started.pid}")
    found += [f"{started.name} still listens on port {port}" for port in started.ports if is_open(port)]
    return found
