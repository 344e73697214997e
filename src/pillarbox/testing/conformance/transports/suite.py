"""The suite: every theme in one class."""

from __future__ import annotations

import pytest

from pillarbox.testing.conformance.transports.answers import AnswersConformance
from pillarbox.testing.conformance.transports.arrival import ArrivalConformance
from pillarbox.testing.conformance.transports.capability import CapabilityReport
from pillarbox.testing.conformance.transports.content import ContentConformance
from pillarbox.testing.conformance.transports.life import LifeConformance
from pillarbox.testing.conformance.transports.outage import OutageConformance


@pytest.mark.asyncio
class TransportConformance(
    ArrivalConformance,
    ContentConformance,
    AnswersConformance,
    OutageConformance,
    LifeConformance,
    CapabilityReport,
):
    """Inherit this, and define the fixture `harness`."""
