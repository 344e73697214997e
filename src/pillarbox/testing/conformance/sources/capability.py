"""What a source truly cannot do is skipped, with the reason; everything else is asked of every source."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from pillarbox.testing.conformance.sources.harness import SourceHarness

_REASONS = {
    "survives_restart": "there is no server behind this source that could be started anew",
    "outages": "the way of this source cannot be cut",
}


def needs(harness: SourceHarness, capability: str) -> None:
    """Skip the test unless the source has the capability."""
    if not getattr(harness.capabilities, capability):
        pytest.skip(f"{_REASONS[capability]} ({asdict(harness.capabilities)})")
