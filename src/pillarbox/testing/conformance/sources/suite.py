"""The suite: every theme in one class."""

from __future__ import annotations

import pytest

from pillarbox.testing.conformance.sources.answers import AnswersConformance
from pillarbox.testing.conformance.sources.content import ContentConformance
from pillarbox.testing.conformance.sources.hands import HandsConformance
from pillarbox.testing.conformance.sources.outage import OutageConformance


@pytest.mark.asyncio
class SourceConformance(ContentConformance, AnswersConformance, HandsConformance, OutageConformance):
    """Inherit this, and define the fixture `harness`."""
