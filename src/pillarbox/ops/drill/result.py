"""The result of a drill: counts from its ledgers, violations, and whether the run proves anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from pillarbox.core.text import plural
from pillarbox.ops.drill.checker import Findings
from pillarbox.ops.drill.recovery import LatencyPoint, percentile
from pillarbox.ops.drill.schedule import CRASHES, OUTAGES, ExecutedFault, FaultKind
from pillarbox.ops.drill.target import LEASE

Conclusion = Literal["passed", "failed", "void"]

FORMAT = 1
"""Version of the JSON report."""
EXAMPLES = 5
"""Ids that a report names per finding."""
LONGEST_RECOVERY = LEASE + 15.0
"""Seconds: other relays own the lanes of a crashed one after a lease, and reconnect and retry within the rest."""
LEAST_EXECUTED = 3
"""A kind of fault that was executed so often and never took effect makes a run void."""
NO_RECOVERY: tuple[FaultKind, ...] = ("drain", "kill-consumer")
"""Faults that do not delay events at the broker."""


class Remainder(NamedTuple):
    """What is left when the relays have drained and ended; nothing, if all is well."""

    stuck: int = 0
    """Events that are still pending."""
    in_flight: int = 0
    """Messages that relays had neither settled nor released."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillResult:
    """What a drill found."""

    setup: dict[str, Any]
    """Seed, engines, versions and options, as the report shows them."""
    seconds: float
    committed: int
    rolled_back: int
    unknown_outcomes: int
    """Transactions that failed or were not answered; the database decided about them."""
    received: int
    findings: Findings
    order_is_known: bool
    remainder: Remainder
    dead_letters: int
    faults: Sequence[ExecutedFault]
    recoveries: Sequence[float]
    """Seconds, one per fault."""
    interruptions: int
    """Leases, connections and destinations that relays lost, once until they had them again."""
    unplanned_interruptions: int
    """Those of them that no crash and no outage of the drill explains."""
    max_in_flight: int
    relays: int
    began: float
    """Monotonic time."""
    latencies: Sequence[LatencyPoint]

    @property
    def effective(self) -> Counter[FaultKind]:
        """How many faults of each kind took effect."""
        return Counter(fault.kind for fault in self.faults if fault.took_effect)

    @property
    def crashes(self) -> int:
        """Faults after which one relay may send again."""
        return sum(fault.kind in CRASHES for fault in self.faults)

    @property
    def max_duplicates(self) -> int:
        """Messages that relays can have had in flight when they crashed, or lost a lease or a connection.

        A crashed relay reported how many it had; every relay may have had as many as possible when an outage began.
        """
        crashes = sum(min(fault.in_flight, self.max_in_flight) for fault in self.faults if fault.kind in CRASHES)
        outages = sum(fault.kind in OUTAGES for fault in self.faults) * (self.relays + 1)
        return crashes + (outages + self.unplanned_interruptions) * self.max_in_flight

    @property
    def violations(self) -> list[str]:
        """One sentence per violated guarantee."""
        found = self.findings
        out_of_order = found.out_of_order if self.order_is_known else []
        lists = (
            (found.lost, "lost: committed, but never received", "event"),
            (found.phantom, "phantom: received, but never committed", "event"),
            (out_of_order, "out of order", "key"),
            (found.stale, "settled by a relay that no longer owned the lane", "event"),
            (found.wrong_effects, "with an effect that was not applied exactly once", "event"),
        )
        texts = [f"{plural(len(ids), noun)} {what}, for example {ids[0]}" for ids, what, noun in lists if ids]
        if stuck := self.remainder.stuck:
            texts.append(f"{plural(stuck, 'event is', 'events are')} still pending after the faults ended")
        if in_flight := self.remainder.in_flight:
            texts.append(f"{plural(in_flight, 'message was', 'messages were')} in flight when the relays had drained")
        if self.dead_letters:
            texts.append(f"{plural(self.dead_letters, 'dead letter')}, although every event can be delivered")
        if found.duplicates > self.max_duplicates:
            texts.append(f"{plural(found.duplicates, 'duplicate')}, but at most {self.max_duplicates:,} possible")
        return texts

    @property
    def conclusion(self) -> Conclusion:
        if self.violations:
            return "failed"
        return "void" if self.void_reasons else "passed"

    @property
    def executed(self) -> Counter[FaultKind]:
        """How many faults of each kind were executed."""
        return Counter(fault.kind for fault in self.faults)

    @property
    def void_reasons(self) -> list[str]:
        """One sentence per reason for which the run proves nothing; empty: it does."""
        if not self.committed:
            return ["no event was committed"]
        if not self.effective:
            return ["no fault took effect"]
        return [
            f"{kind} was executed {count} times and never took effect"
            for kind, count in self.executed.items()
            if count >= LEAST_EXECUTED and not self.effective[kind]
        ]

    @property
    def warnings(self) -> list[str]:
        """One sentence per kind of fault from which the relays recovered late; a busy machine may be the reason."""
        return [
            f"the recovery from {kind} took up to {seconds['max']:.1f} s; {LONGEST_RECOVERY:g} s are expected at most"
            for kind, seconds in self.recovery().items()
            if seconds["max"] > LONGEST_RECOVERY
        ]

    def recovery(self) -> dict[str, dict[str, float]]:
        """Return count, p50, p99 and maximum of the seconds to recover, per kind of fault that took effect."""
        values: dict[str, list[float]] = {}
        for fault, seconds in zip(self.faults, self.recoveries, strict=True):
            if fault.took_effect and fault.kind not in NO_RECOVERY:
                values.setdefault(fault.kind, []).append(seconds)
        return {
            kind: {
                "count": len(found),
                "p50": round(percentile(found, 0.5), 3),
                "p99": round(percentile(found, 0.99), 3),
                "max": round(max(found), 3),
            }
            for kind, found in values.items()
        }

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON."""
        found = self.findings
        return {
            "format": FORMAT,
            "conclusion": self.conclusion,
            "violations": self.violations,
            "void_reasons": self.void_reasons,
            "warnings": self.warnings,
            **self.setup,
            "seconds": round(self.seconds, 1),
            "committed": self.committed,
            "rolled_back": self.rolled_back,
            "unknown_outcomes": self.unknown_outcomes,
            "received": self.received,
            "lost": len(found.lost),
            "phantom": len(found.phantom),
            "order_violations": len(found.out_of_order) if self.order_is_known else None,
            "stale_settlements": len(found.stale),
            "wrong_effects": len(found.wrong_effects),
            "stuck": self.remainder.stuck,
            "in_flight_at_end": self.remainder.in_flight,
            "dead_letters": self.dead_letters,
            "duplicates": found.duplicates,
            "max_duplicates": self.max_duplicates,
            "crashes": self.crashes,
            "duplicates_per_crash": round(found.duplicates / self.crashes, 2) if self.crashes else 0.0,
            "max_duplicates_per_crash": self.max_in_flight,
            "interruptions": self.interruptions,
            "unplanned_interruptions": self.unplanned_interruptions,
            "faults": {
                kind: {"executed": self.executed[kind], "effective": self.effective[kind]}
                for kind in self.setup["options"]["faults"]
            },
            "recovery": self.recovery(),
            "examples": {
                "lost": found.lost[:EXAMPLES],
                "phantom": found.phantom[:EXAMPLES],
                "out_of_order": found.out_of_order[:EXAMPLES],
                "stale": found.stale[:EXAMPLES],
                "wrong_effects": found.wrong_effects[:EXAMPLES],
            },
            "schedule": [
                self._fault(fault, seconds) for fault, seconds in zip(self.faults, self.recoveries, strict=True)
            ],
            "latency": [list(point) for point in self.latencies],
        }

    def _fault(self, fault: ExecutedFault, recovery: float) -> dict[str, Any]:
        return {
            "at": round(fault.began - self.began, 2),
            "kind": fault.kind,
            "effective": fault.took_effect,
            "in_flight": fault.in_flight,
            "victim": fault.victim,
            "point": fault.point,
            "seconds": round(fault.ended - fault.began, 3),
            "recovery": round(recovery, 3),
        }
