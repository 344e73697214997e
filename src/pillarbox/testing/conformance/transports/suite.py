"""The suite: every theme in one class."""

from __future__ import annotations

import pytest

from pillarbox.testing.conformance.transports.capability import TransportCapabilityReport
from pillarbox.testing.conformance.transports.content import TransportContentConformance
from pillarbox.testing.conformance.transports.delivery import DeliveryConformance
from pillarbox.testing.conformance.transports.lifecycle import LifecycleConformance
from pillarbox.testing.conformance.transports.outage import TransportOutageConformance
from pillarbox.testing.conformance.transports.results import ResultConformance


@pytest.mark.asyncio
class TransportConformance(
    DeliveryConformance,
    TransportContentConformance,
    ResultConformance,
    TransportOutageConformance,
    LifecycleConformance,
    TransportCapabilityReport,
):
    """Inherit this, and define the fixture `harness`."""
