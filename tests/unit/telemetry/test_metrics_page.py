"""The metrics page lists exactly the existing metrics with kind and labels."""

import re

from prometheus_client import CollectorRegistry

from pillarbox import Event
from pillarbox.admin.overview import Overview
from pillarbox.core.event import EventsRecorded
from pillarbox.telemetry.prometheus import ConsumerMetrics, RecordMetrics, RelayMetrics, StoreMetrics
from pillarbox.telemetry.prometheus.process import add_build_info
from tests.docs.pages import ROOT
from tests.unit.telemetry.examples import EXAMPLES
from tests.unit.telemetry.exposed import everything, families
from tests.unit.telemetry.test_consumer_lines import LINES

PAGE = (ROOT / "docs/reference/metrics.md").read_text(encoding="utf-8")
ROWS = {
    name: (kind, labels)
    for name, kind, labels in re.findall(
        r"^\| `(\w+)` \| (counter|gauge|histogram) \|([^|]*)\| .+ \|$", PAGE, re.MULTILINE
    )
}
THE_FIVE = {
    "outbox_published_total": "counter",
    "outbox_failed_total": "counter",
    "outbox_retries_total": "counter",
    "outbox_backlog": "gauge",
    "outbox_publish_duration_seconds": "histogram",
}


def test_the_rows_are_the_metrics_with_their_kinds() -> None:
    exposed = {name: kind for name, (kind, _) in families(everything()).items()}
    assert {name: kind for name, (kind, _) in ROWS.items()} == exposed


def test_a_row_names_the_labels() -> None:
    assert labels_in_use() == {name: set(re.findall(r"`(\w+)`", labels)) for name, (_, labels) in ROWS.items()}


def labels_in_use() -> dict[str, set[str]]:
    """The labels in use after every observation."""
    registry = CollectorRegistry()
    relay, store, consumer, record = (
        RelayMetrics(registry),
        StoreMetrics(registry),
        ConsumerMetrics(registry),
        RecordMetrics(registry),
    )
    add_build_info(registry)
    for observation in EXAMPLES:
        if type(observation).__name__ != "RelayStopped":
            relay(observation)
    for reported, *_ in LINES:
        consumer(reported)
    store.show(Overview(backlog=1, oldest=1.0, exact=True, dead=1, lanes=[], relays=[]), queues={"q": 1})
    record(EventsRecorded(events=(Event("order.placed", {}),)))
    found: dict[str, set[str]] = {}
    for family in registry.collect():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        found[name] = {label for sample in family.samples for label in sample.labels if label != "le"}
    return found


def test_the_five_key_metrics_have_the_expected_names() -> None:
    assert {name: ROWS[name][0] for name in THE_FIVE} == THE_FIVE
