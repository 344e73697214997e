"""The suite: every theme in one class."""

from __future__ import annotations

import pytest

from pillarbox.testing.conformance.sources.acknowledgement import AcknowledgementConformance
from pillarbox.testing.conformance.sources.capability import SourceCapabilityReport
from pillarbox.testing.conformance.sources.content import SourceContentConformance
from pillarbox.testing.conformance.sources.outage import SourceOutageConformance
from pillarbox.testing.conformance.sources.prefetch import PrefetchConformance


@pytest.mark.asyncio
class SourceConformance(
    SourceContentConformance,
    AcknowledgementConformance,
    PrefetchConformance,
    SourceOutageConformance,
    SourceCapabilityReport,
):
    """Inherit this, and define the fixture `harness`."""
