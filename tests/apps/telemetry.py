"""Reads the page /metrics of a process, and the spans in its log."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import httpx
from prometheus_client.parser import text_string_to_metric_families

TO_STDOUT = {"OTEL_TRACES_EXPORTER": "console", "OTEL_BSP_SCHEDULE_DELAY": "100"}
"""Variables that make a process write its spans to its log without delay."""


def metric(address: str, name: str, **labels: str) -> float:
    """The sum of the samples of that name with these labels, 0 without any."""
    page = httpx.get(f"http://{address}/metrics").raise_for_status().text
    return sum(
        sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One span of a trace."""

    name: str
    trace: str
    id: str
    parent: str | None


def spans(log: str) -> Iterator[Span]:
    """The spans in a log."""
    decoder = json.JSONDecoder()
    start = log.find("{\n")
    while start >= 0:
        try:
            found, end = decoder.raw_decode(log, start)
        except ValueError:
            start = log.find("{\n", start + 1)
            continue
        if "context" in found:
            context = found["context"]
            yield Span(name=found["name"], trace=context["trace_id"], id=context["span_id"], parent=found["parent_id"])
        start = log.find("{\n", end)


def tree(logs: Iterable[str], trace: str) -> dict[str, str]:
    """The spans of a trace by name, each with the name of its parent; '' if the parent is not in the logs."""
    found = {span.id: span for log in logs for span in spans(log) if span.trace == f"0x{trace}"}

    return {span.name: found[span.parent].name if span.parent in found else "" for span in found.values()}
