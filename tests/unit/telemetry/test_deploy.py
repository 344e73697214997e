"""The alert rules and the dashboard use existing metrics and cover all requirements."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.pages import ROOT, blocks
from tests.servers.availability import available
from tests.servers.debian import PROMTOOL
from tests.unit.telemetry.exposed import everything, samples

RULES_FILE = ROOT / "deploy/prometheus/alerts.yml"
RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load(RULES_FILE.read_text(encoding="utf-8"))["groups"] for rule in group["rules"]
]
SCENES_FILE = RULES_FILE.with_name("alerts_test.yml")
SCENES: list[dict[str, Any]] = yaml.safe_load(SCENES_FILE.read_text(encoding="utf-8"))["tests"]
DASHBOARD: dict[str, Any] = json.loads((ROOT / "deploy/grafana/pillarbox.json").read_text(encoding="utf-8"))
OF_OTHERS = {"pg_stat_activity_max_tx_duration"}
"""Metrics of postgres_exporter, which the rules file requires."""

_NAME = re.compile(r"\b(?:outbox|inbox|pg|rabbitmq)_\w+")


def asked_by_panels() -> Iterator[tuple[str, str]]:
    return ((panel["title"], target["expr"]) for panel in DASHBOARD["panels"] for target in panel["targets"])


def unknown(expression: str) -> set[str]:
    return set(_NAME.findall(expression)) - samples(everything()) - OF_OTHERS


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_alerts_use_existing_metrics(rule: dict[str, Any]) -> None:
    assert _NAME.findall(rule["expr"])
    assert unknown(rule["expr"]) == set()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_has_summary_and_description(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert rule["annotations"]["summary"]
    assert rule["annotations"]["description"].endswith(".")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_names_a_page_of_the_documentation(rule: dict[str, Any]) -> None:
    page, _, anchor = rule["annotations"]["runbook"].partition("#")
    text = (ROOT / page).read_text(encoding="utf-8")
    headings = {
        re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^#+ (.+)$", text, re.M)
    }
    assert not anchor or anchor in headings


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_of_an_outbox_distinguishes_outboxes(rule: dict[str, Any]) -> None:
    if "outbox_" in rule["expr"]:
        aggregated = re.findall(r"\b(?:max|sum)(?: by \(([^)]*)\))? ?\(", rule["expr"])
        assert aggregated
        assert all("outbox" in labels for labels in aggregated)


def test_the_dashboard_selects_an_outbox() -> None:
    for title, expression in asked_by_panels():
        selected = re.findall(r"\boutbox_\w+(\{[^}]*\})?", expression)
        assert all('outbox=~"$outbox"' in labels for labels in selected), title


def test_every_required_alert_exists() -> None:
    wanted = {
        "OutboxBacklogGrows": "outbox_backlog",
        "OutboxBacklogLarge": "outbox_backlog",
        "OutboxOldestEventTooOld": "outbox_oldest_age_seconds",
        "OutboxDeadLetters": "outbox_dead_letters",
        "OutboxKeysBlocked": "outbox_keys_blocked",
        "OutboxRelayAbsent": "outbox_relays_running",
        "OutboxRelayStalled": "outbox_relay_stalled",
        "OutboxBreakerOpen": "outbox_breaker_state",
        "OutboxDeadLetterQueueNotEmpty": "outbox_dead_letter_queue_depth",
        "OutboxLongTransaction": "pg_stat_activity_max_tx_duration",
    }
    expressions = {rule["alert"]: rule["expr"] for rule in RULES}
    assert [alert for alert, metric in wanted.items() if metric not in expressions.get(alert, "")] == []


@pytest.mark.parametrize(("verb", "file"), [("check", RULES_FILE), ("test", SCENES_FILE)])
def test_promtool_accepts_the_rules(verb: str, file: Path) -> None:
    promtool = available(PROMTOOL.path)
    done = subprocess.run([promtool, verb, "rules", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_accepts_the_configuration_of_the_page(tmp_path: Path) -> None:
    """With the rules beside it, as the page says."""
    promtool = available(PROMTOOL.path)
    [configuration] = blocks(ROOT / "docs/how-to/monitor.md", "yaml")
    (tmp_path / "prometheus.yml").write_text(configuration, encoding="utf-8")
    shutil.copy(RULES_FILE, tmp_path)
    command = [promtool, "check", "config", str(tmp_path / "prometheus.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(RULES)} rules found" in done.stdout


@pytest.mark.parametrize("fires", [True, False])
def test_every_alert_has_tests_in_which_it_fires_and_does_not(fires: bool) -> None:
    asked = [question for scene in SCENES for question in scene["promql_expr_test"]]
    shown = {
        name
        for question in asked
        if fires == ("exp_samples" in question)
        for name in re.findall(r'alertname="(\w+)"', question["expr"])
    }
    assert shown == {rule["alert"] for rule in RULES}


@pytest.mark.parametrize(("title", "expression"), list(asked_by_panels()))
def test_panels_use_existing_metrics(title: str, expression: str) -> None:
    assert _NAME.findall(expression)
    assert unknown(expression) == set()


@pytest.mark.parametrize(
    ("title", "metric"),
    [
        ("Publishing rate", "outbox_published_total"),
        ("Retry rate", "outbox_retries_total"),
        ("Backlog size", "outbox_backlog"),
        ("Error rate", "outbox_failed_total"),
        ("Latency", "outbox_lag_seconds_bucket"),
    ],
)
def test_each_of_the_five_key_metrics_has_a_panel(title: str, metric: str) -> None:
    assert [expression for found, expression in asked_by_panels() if found == title and metric in expression]


LOAD = {
    'outbox_published_total{destination="orders"}': "0+90x20",
    'outbox_retries_total{destination="orders"}': "0+30x20",
    'outbox_failed_total{destination="orders"}': "0+30x20",
    'outbox_backlog{instance="a"}': "7x20",
    'outbox_lag_seconds_bucket{le="1"}': "0+0x20",
    'outbox_lag_seconds_bucket{le="3"}': "0+60x20",
    'outbox_lag_seconds_bucket{le="+Inf"}': "0+60x20",
}
"""Samples of a relay that delivers 90 events a minute, scraped once a minute for twenty minutes."""


@pytest.mark.parametrize(
    ("title", "labels", "value"),
    [
        ("Publishing rate", '{destination="orders"}', 1.5),
        ("Retry rate", '{destination="orders"}', 0.25),
        ("Backlog size", "{}", 7),
        ("Error rate", '{destination="orders"}', 0.5),
        ("Latency", "{}", 2),
    ],
)
def test_a_panel_shows_the_scraped_value(title: str, labels: str, value: float, tmp_path: Path) -> None:
    expression = next(expression for found, expression in asked_by_panels() if found == title)
    scene = {
        "interval": "1m",
        "input_series": [{"series": series, "values": values} for series, values in LOAD.items()],
        "promql_expr_test": [
            {
                "expr": expression.replace("$__rate_interval", "5m").replace("$outbox", ".*"),
                "eval_time": "20m",
                "exp_samples": [{"labels": labels, "value": value}],
            }
        ],
    }
    file = tmp_path / "scene.yml"
    file.write_text(yaml.safe_dump({"rule_files": [], "tests": [scene]}), encoding="utf-8")
    done = subprocess.run(
        [available(PROMTOOL.path), "test", "rules", str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_unknown_metric_is_found() -> None:
    assert unknown("rate(outbox_publised_total[5m])") == {"outbox_publised_total"}


def test_the_panels_do_not_overlap() -> None:
    cells = [
        (x, y)
        for panel in DASHBOARD["panels"]
        for place in [panel["gridPos"]]
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
