"""Skips a test that needs a capability which the store does not state; all other tests run for every store."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from pillarbox.testing.conformance.harness import StoreHarness

_REASONS = {
    ("many_writers", True): "this store has one writer at a time: its transactions cannot overlap",
    ("partitions", False): "this store drops its history by whole days, and today's is never old enough",
    ("survives_restart", True): "this store lives in one process and forgets with it",
}


def needs(harness: StoreHarness, **wanted: bool) -> None:
    """Skip the test unless the store has the capabilities."""
    for name, value in wanted.items():
        if getattr(harness.store.capabilities, name) is not value:
            pytest.skip(_REASONS[name, value])


class CapabilityReport:
    """Prints the capabilities of a store once per run."""

    @pytest.fixture(autouse=True)
    def announced_capabilities(self, harness: StoreHarness, request: pytest.FixtureRequest) -> None:
        announced = request.config.stash.setdefault(_ANNOUNCED, set())
        if type(self) in announced:
            return
        announced.add(type(self))
        told = ", ".join(f"{name}={value}" for name, value in asdict(harness.store.capabilities).items())
        plugins = request.config.pluginmanager
        reporter, capture = plugins.get_plugin("terminalreporter"), plugins.get_plugin("capturemanager")
        if reporter is not None and capture is not None:
            with capture.global_and_fixture_disabled():
                reporter.ensure_newline()
                reporter.write_line(f"{type(self).__name__}: {told}")


_ANNOUNCED = pytest.StashKey[set[type]]()
