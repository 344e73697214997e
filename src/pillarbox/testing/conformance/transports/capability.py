"""Skips a test that needs a capability which the transport does not state; all other tests run for every transport."""

from __future__ import annotations

import pytest

from pillarbox.testing.conformance.capability import print_capabilities, skip_unsupported
from pillarbox.testing.conformance.transports.harness import TransportHarness

_REASONS = {
    "ordered": "this transport sends the messages of one batch concurrently",
    "routes": "this transport cannot detect that a message has no receiver",
    "refuses": "this transport can send every message",
    "survives_restart": "this transport has no server that could be restarted",
    "outages": "the connection of this transport cannot be interrupted",
}


def needs(harness: TransportHarness, capability: str) -> None:
    """Skip the test unless the transport has the capability."""
    if not getattr(harness.capabilities, capability):
        skip_unsupported(_REASONS[capability])


class TransportCapabilityReport:
    """Prints the capabilities of a transport once per run."""

    @pytest.fixture(autouse=True)
    def printed_capabilities(self, harness: TransportHarness, request: pytest.FixtureRequest) -> None:
        print_capabilities(request, type(self), harness.capabilities)
