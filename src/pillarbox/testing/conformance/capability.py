"""Skips a test that needs a capability which the store does not state; all other tests run for every store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, NoReturn, TypeVar

import pytest

from pillarbox.admin.admin import AdminStore
from pillarbox.core.store import Capabilities
from pillarbox.testing.conformance.harness import StoreHarness

T = TypeVar("T")

NOT_SUPPORTED = "not supported: "
"""How the reason of every skip of the suites begins."""


_REASONS = {
    "concurrent_writers": "this store has one writer at a time: its transactions cannot overlap",
    "listings": "this store does not list events and dead letters",
    "requests": "this store executes no operator requests",
    "history_without_partitions": "this store deletes its history by whole days, and today's is not expired",
    "several_lanes": "this store has a single lane",
    "survives_restart": "this store keeps its data in the memory of one process",
}


def needs(harness: StoreHarness, *requirements: str) -> None:
    """Skip the test unless the capabilities of the store meet the requirements."""
    met = _met_by(harness.store.capabilities)
    for requirement in requirements:
        if not met[requirement]:
            skip_unsupported(_REASONS[requirement])


def needing(*requirements: str) -> Callable[[T], T]:
    """Decorate a test, or a class of tests: skip unless the capabilities of the store meet the requirements."""

    def decorate(decorated: T) -> T:
        target: Any = decorated
        tests = vars(target).values() if isinstance(target, type) else [target]
        for test in tests:
            if getattr(test, "__name__", "").startswith("test_"):
                setattr(test, _NEEDED, (*getattr(test, _NEEDED, ()), *requirements))
        return decorated

    return decorate


_NEEDED = "needed_capabilities"


def _met_by(capabilities: Capabilities) -> dict[str, bool]:
    return {
        "concurrent_writers": capabilities.many_writers,
        "listings": capabilities.listings,
        "requests": bool(capabilities.requests),
        "history_without_partitions": not capabilities.partitions,
        "several_lanes": capabilities.lanes > 1,
        "survives_restart": capabilities.survives_restart,
    }


def skip_unsupported(reason: str) -> NoReturn:
    """Skip the test because the adapter does not support what the test needs."""
    pytest.skip(f"{NOT_SUPPORTED}{reason}")


class StoreCapabilityReport:
    """Skips tests that the store does not support, and prints its capabilities once per run."""

    @pytest.fixture(autouse=True)
    def needed_capabilities(self, harness: StoreHarness, request: pytest.FixtureRequest) -> None:
        needs(harness, *getattr(request.function, _NEEDED, ()))

    @pytest.fixture(autouse=True)
    def printed_capabilities(self, harness: StoreHarness, request: pytest.FixtureRequest) -> None:
        print_capabilities(request, type(self), harness.store.capabilities)


def print_capabilities(request: pytest.FixtureRequest, suite: type, capabilities: Any) -> None:
    """Print the capabilities, a dataclass, once per run and suite."""
    printed = request.config.stash.setdefault(_PRINTED, set())
    if suite in printed:
        return
    printed.add(suite)
    values = ", ".join(f"{name}={value}" for name, value in asdict(capabilities).items())
    plugins = request.config.pluginmanager
    reporter, capture = plugins.get_plugin("terminalreporter"), plugins.get_plugin("capturemanager")
    if reporter is not None and capture is not None:
        with capture.global_and_fixture_disabled():
            reporter.ensure_newline()
            reporter.write_line(f"{suite.__name__}: {values}")


_PRINTED = pytest.StashKey[set[type]]()


async def store_without_tables(harness: StoreHarness) -> AdminStore:
    """Return the store without tables; skip the test if the store has no tables that could be missing."""
    store = await harness.store_without_tables()
    return skip_unsupported("this store has no tables that could be missing") if store is None else store
