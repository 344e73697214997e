"""Skips a test that needs a capability which the source does not state; all other tests run for every source."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from pillarbox.testing.conformance.sources.harness import SourceHarness

_REASONS = {
    "survives_restart": "this source has no server that could be restarted",
    "outages": "the way of this source cannot be cut",
}


def needs(harness: SourceHarness, capability: str) -> None:
    """Skip the test unless the source has the capability."""
    if not getattr(harness.capabilities, capability):
        pytest.skip(f"{_REASONS[capability]} ({asdict(harness.capabilities)})")
