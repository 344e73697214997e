"""The suite: every theme in one class."""

from __future__ import annotations

import pytest

from pillarbox.testing.conformance.transports.capability import CapabilityReport
from pillarbox.testing.conformance.transports.content import ContentConformance
from pillarbox.testing.conformance.transports.delivery import DeliveryConformance
from pillarbox.testing.conformance.transports.lifecycle import LifecycleConformance
from pillarbox.testing.conformance.transports.outage import OutageConformance
from pillarbox.testing.conformance.transports.results import ResultConformance


@pytest.mark.asyncio
class TransportConformance(
    DeliveryConformance,
    ContentConformance,
    ResultConformance,
    OutageConformance,
    LifecycleConformance,
    CapabilityReport,
):
    """Inherit this, and define the fixture `harness`."""
