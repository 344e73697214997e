"""The suite: every theme in one class."""

from __future__ import annotations

import pytest

from pillarbox.testing.conformance.sources.acknowledgement import AcknowledgementConformance
from pillarbox.testing.conformance.sources.content import ContentConformance
from pillarbox.testing.conformance.sources.outage import OutageConformance
from pillarbox.testing.conformance.sources.prefetch import PrefetchConformance


@pytest.mark.asyncio
class SourceConformance(ContentConformance, AcknowledgementConformance, PrefetchConformance, OutageConformance):
    """Inherit this, and define the fixture `harness`."""
