"""Skips a test that needs a capability which the source does not state; all other tests run for every source."""

from __future__ import annotations

import pytest

from pillarbox.testing.conformance.capability import print_capabilities, skip_unsupported
from pillarbox.testing.conformance.sources.harness import SourceHarness

_REASONS = {
    "survives_restart": "this source has no server that could be restarted",
    "outages": "the connection of this source cannot be interrupted",
    "competing": "consumers of this source receive whole partitions",
}


def needs(harness: SourceHarness, capability: str) -> None:
    """Skip the test unless the source has the capability."""
    if not getattr(harness.capabilities, capability):
        skip_unsupported(_REASONS[capability])


class SourceCapabilityReport:
    """Prints the capabilities of a source once per run."""

    @pytest.fixture(autouse=True)
    def printed_capabilities(self, harness: SourceHarness, request: pytest.FixtureRequest) -> None:
        print_capabilities(request, type(self), harness.capabilities)
