"""The conformance suites consist of themes; a test name in two themes would hide one of the tests."""

from __future__ import annotations

from collections import Counter

import pytest

from pillarbox.testing.conformance import AdminConformance, StoreConformance
from pillarbox.testing.conformance.sources import SourceConformance
from pillarbox.testing.conformance.transports import TransportConformance


class WholeStoreConformance(StoreConformance, AdminConformance):
    """Both halves, as the stores on SQL inherit them."""

    __test__ = False


@pytest.mark.parametrize("suite", [WholeStoreConformance, TransportConformance, SourceConformance])
def test_no_theme_hides_a_test_of_another(suite: type) -> None:
    names = Counter(name for theme in suite.__mro__ for name in vars(theme) if name.startswith("test_"))
    assert [name for name, times in names.items() if times > 1] == []
