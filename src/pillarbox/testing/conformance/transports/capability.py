"""Skips a test that needs a capability which the transport does not state; all other tests run for every transport."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from pillarbox.testing.conformance.transports.harness import TransportHarness

_REASONS = {
    "ordered": "this transport works on the messages of one batch side by side",
    "routes": "this transport cannot detect that a message has no receiver",
    "refuses": "there is no message that this transport could not send",
    "survives_restart": "this transport has no server that could be restarted",
    "outages": "the way of this transport cannot be cut",
}


def needs(harness: TransportHarness, capability: str) -> None:
    """Skip the test unless the transport has the capability."""
    if not getattr(harness.capabilities, capability):
        pytest.skip(_REASONS[capability])


class CapabilityReport:
    """Prints the capabilities of a transport once per run."""

    @pytest.fixture(autouse=True)
    def announced_capabilities(self, harness: TransportHarness, request: pytest.FixtureRequest) -> None:
        announced = request.config.stash.setdefault(_ANNOUNCED, set())
        if type(self) in announced:
            return
        announced.add(type(self))
        told = ", ".join(f"{name}={value}" for name, value in asdict(harness.capabilities).items())
        plugins = request.config.pluginmanager
        reporter, capture = plugins.get_plugin("terminalreporter"), plugins.get_plugin("capturemanager")
        if reporter is not None and capture is not None:
            with capture.global_and_fixture_disabled():
                reporter.ensure_newline()
                reporter.write_line(f"{type(self).__name__}: {told}")


_ANNOUNCED = pytest.StashKey[set[type]]()
