"""The page of evidence, made from the raw reports of drills in `docs/evidence`.

`python -m tests.docs.evidence` writes it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pillarbox.core.text import plural
from pillarbox.ops.drill.recovery import percentile
from pillarbox.ops.drill.schedule import OUTAGES
from tests.docs.pages import ROOT

PAGE = ROOT / "docs/explanation/evidence.md"
REPORTS = ROOT / "docs/evidence"
PLANNED_KILLS, PLANNED_EVENTS = 2_000, 2_000_000
PLANNED_PART = 2
"""One in so many of them on PostgreSQL with quorum queues."""
RELAY_KILLS = ("kill", "blocked-settlement")
CONSUMER_KILLS = ("kill-consumer",)
KILLS = (*RELAY_KILLS, *CONSUMER_KILLS)

_HEAD = """# Evidence

`python -m tests.docs.evidence` writes this page from the raw reports in `docs/evidence`. Each of them is the unchanged
report of one run of [`pillarbox drill`](../how-to/run-a-drill.md) or of `make soak`, which anyone can repeat: the seed
gives the same schedule of faults. Tests of the drill remove one guard at a time (confirm, mandatory, epoch, lane lock,
order of retries, inbox), and each of them makes the drill fail (`tests/faults/test_drill.py`).

Runs whose names end in `quiet` had the two cores for themselves; beside those with all faults, test runs of low
priority used what was left. The others shared the cores with test suites and other runs, so that their recovery times
contain waits for a core. Beside the relays that are counted below, one is never hit, so that its memory can be measured
(not on SQLite). In `postgresql-rabbitmq-30-minutes`, every recovery from a kill that took over 2 s followed a restart
of the database: relays then still waited for the lease of a relay that crashed within 5 s after a restart. Since then
they see it at once, as the quiet runs with all faults show.
"""
_COLUMNS = (
    "run",
    "engines",
    "seed",
    "committed",
    "kills (relays + consumers)",
    "lost",
    "phantom",
    "duplicates (per crash / bound)",
    "order violations",
    "wrong effects",
    "stuck",
    "recovery after kill p50 / p99",
)
_NOT_RUN = """## What was not run

- Power loss and torn writes, and clusters across real hosts: all processes and servers of a run were on one machine.
- A real Kafka broker: none was available. `make test` uses librdkafka's mock cluster, which has no replicas to elect.
- Versions of servers other than those in the table of [supported versions](../reference/versions.md).
- Long runs on clusters: the runs above used single nodes. `make drills` runs short drills (`tests/drills`):
    - Three nodes of RabbitMQ or NATS: the leader and a follower are killed.
    - Three nodes of RabbitMQ, each in its own network namespace, with `cluster_partition_handling = pause_minority`:
      one node, a leader and then a follower, is cut off from the two others and reconnected; sometimes it is cut off
      from its clients, too.
    - PostgreSQL and MariaDB: the primary is killed, or cut off from its replica and then killed, and the replica is
      promoted. With synchronous replication (on MariaDB semi-synchronous) nothing is lost. With
      asynchronous replication the failover loses events that were committed and not yet replicated, and effects of
      delivered ones: no outbox can prevent that.
    - MariaDB, a single server: it is killed and started again.
    - PgBouncer in transaction mode, for producers and consumers: it is killed, and so is the server behind it.
    - Certificates of RabbitMQ, NATS, Redis, PostgreSQL and MariaDB: they expire while events flow, and are replaced.
- The order in which a consumer receives messages when its node of RabbitMQ was cut off: that drill checks the order in
  a queue without a consumer. After outages of NATS and Redis, a drill checks the order of what they stored.
- Other network partitions: partial ones (two nodes of three that cannot reach each other), links that drop single
  packets between nodes, and RabbitMQ's other settings for partitions.
- Redis Sentinel, Redis Cluster and Galera.

[Faults](faults.md) lists every fault on every engine, and what no test shows.
"""


def read_reports(folder: Path = REPORTS) -> dict[str, dict[str, Any]]:
    """Return the reports by name."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}


def page(reports: dict[str, dict[str, Any]]) -> str:
    """Return the page."""
    parts = [_HEAD, "## Runs\n"]
    if reports:
        parts += ["\n".join(_table(reports)), "", *_totals(list(reports.values())), "", *_details(reports)]
    else:
        parts.append("No run is committed yet.\n")
    return "\n".join([*parts, _NOT_RUN])


def kills(report: dict[str, Any], kinds: Sequence[str] = KILLS) -> int:
    """Return the kills that hit a process with messages in flight."""
    return sum(report["faults"].get(kind, {}).get("effective", 0) for kind in kinds)


def _table(reports: dict[str, dict[str, Any]]) -> list[str]:
    rows = [f"| {' | '.join(_COLUMNS)} |", f"|{'---|' * len(_COLUMNS)}"]
    for name, one in reports.items():
        after_kill = one["recovery"].get("kill")
        order = one["order_violations"]
        cells = (
            f"[{name}](../evidence/{name}.json)",
            f"{_store(one)} → {_transport(one)}",
            one["seed"],
            f"{one['committed']:,}",
            f"{kills(one):,} ({kills(one, RELAY_KILLS):,} + {kills(one, CONSUMER_KILLS):,})",
            one["lost"],
            one["phantom"],
            f"{one['duplicates']:,} ({one['duplicates_per_crash']:g} / {one['max_duplicates_per_crash']})",
            "not known" if order is None else order,
            one["wrong_effects"],
            one["stuck"],
            f"{after_kill['p50']:.2f} s / {after_kill['p99']:.2f} s" if after_kill else "no kill",
        )
        rows.append(f"| {' | '.join(map(str, cells))} |")
    return rows


def _totals(reports: Sequence[dict[str, Any]]) -> list[str]:
    """Void runs count for nothing."""
    counted = [one for one in reports if one["conclusion"] != "void"]
    main = [one for one in counted if (one["store"], one["transport"]) == ("postgresql", "rabbitmq")]
    failed = sum(one["conclusion"] == "failed" for one in counted)
    runs = f"{plural(len(counted), 'run')}, {failed} of them failed"
    lines = [f"In total: {runs}; {_sum(counted)}."]
    if main:
        lines.append(f"Of these on PostgreSQL with quorum queues: {_sum(main)}.")
    outages = [fault["recovery"] for one in counted for fault in one["schedule"] if fault["kind"] in OUTAGES]
    if outages:
        p50, p99 = (percentile(outages, part) for part in (0.5, 0.99))
        lines.append(
            f"Recovery after {len(outages)} outages of the database or the broker: p50 {p50:.2f} s, p99 {p99:.2f} s, "
            f"longest {max(outages):.2f} s."
        )
    if not (_reach_the_plan(counted) and _reach_the_plan(main, part=PLANNED_PART)):
        lines.append(
            f"The plan is at least {PLANNED_EVENTS:,} events and {PLANNED_KILLS:,} kills, half of them on PostgreSQL "
            "with quorum queues: these runs do not reach it."
        )
    return lines


def _reach_the_plan(reports: Sequence[dict[str, Any]], *, part: int = 1) -> bool:
    events, killed = sum(one["committed"] for one in reports), sum(map(kills, reports))
    return events * part >= PLANNED_EVENTS and killed * part >= PLANNED_KILLS


def _sum(reports: Sequence[dict[str, Any]]) -> str:
    events = sum(one["committed"] for one in reports)
    of_relays, of_consumers = (sum(kills(one, kinds) for one in reports) for kinds in (RELAY_KILLS, CONSUMER_KILLS))
    return (
        f"{events:,} events; {of_relays + of_consumers:,} kills in flight, "
        f"{of_relays:,} of relays and {of_consumers:,} of consumers"
    )


def _details(reports: dict[str, dict[str, Any]]) -> list[str]:
    lines: list[str] = []
    for name, one in reports.items():
        faults = ", ".join(f"{kind} {counts['effective']}" for kind, counts in one["faults"].items())
        recovery = ", ".join(
            f"{kind} {found['p50']:.2f} s / {found['p99']:.2f} s" for kind, found in one["recovery"].items()
        )
        lines += [
            f"### {name}\n",
            f"- {one['conclusion']}, ended {one['ended_at']}, {one['seconds']:,.0f} s; "
            f"Pillarbox {one['pillarbox']}{_commit(one)}, Python {one['python']}, {_store(one)}, {_transport(one)}; "
            f"{one['options']['relays']} relays, "
            f"{one['options']['rate']:g} events/s at most{_cores(one)}.",
            f"- Faults that took effect: {faults}.",
            f"- Recovery p50 / p99: {recovery or 'no fault took effect'}.",
            f"- {one['rolled_back']:,} events rolled back, {one['unknown_outcomes']:,} transactions that failed or "
            "were not answered, about which the database decided, "
            f"{one['dead_letters']} dead letters, {one['stale_settlements']} stale settlements.",
        ]
        lines += [f"- Violation: {violation}" for violation in one["violations"]]
        if resources := one.get("resources"):
            told = "; ".join(
                f"{what}: first {found['first']:g}, median {found['median']:g}, last {found['last']:g}"
                for what, found in resources.items()
            )
            lines.append(f"- {told}.")
        lines.append("")
    return lines


def _commit(report: dict[str, Any]) -> str:
    return f" at {report['commit']}" if report.get("commit") else ""


def _cores(report: dict[str, Any]) -> str:
    return f"; {plural(report['cores'], 'core')} for all servers and processes" if "cores" in report else ""


def _store(report: dict[str, Any]) -> str:
    return f"{report['store']} {report['store_version'].split()[0]}"


def _transport(report: dict[str, Any]) -> str:
    return f"{report['transport']} {report.get('transport_version', '')}".strip()


def main() -> None:
    PAGE.write_text(page(read_reports()), encoding="utf-8")


if __name__ == "__main__":
    main()
