"""The report of a drill as one HTML file that loads nothing: tables, and a plot of latency and faults over time."""

from __future__ import annotations

from html import escape
from typing import Any

from pillarbox.ops.drill.report import FAULT_COLUMNS, conclusion, facts, faults

WIDTH, HEIGHT, MARGIN = 960, 240, 46

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem; color: #1b1b1f; }
table { border-collapse: collapse; margin: 1rem 0; }
td, th { padding: .25rem .9rem .25rem 0; text-align: left; border-bottom: 1px solid #ddd; }
.passed { color: #12712f; } .failed { color: #b3141d; } .void { color: #8a6100; }
svg { width: 100%; height: auto; } text { font: 11px system-ui, sans-serif; fill: #555; }
@media (prefers-color-scheme: dark) {
  body { background: #16161a; color: #e6e6ea; } td, th { border-color: #333; } text { fill: #aaa; }
}
"""


def page(report: dict[str, Any]) -> str:
    """Return the page; report: from `DrillResult.as_json`."""
    text, _ = conclusion(report)
    violations = "".join(f"<li>{escape(violation)}</li>" for violation in report["violations"])
    warnings = "".join(f"<li>warning: {escape(warning)}</li>" for warning in report["warnings"])
    rows = "".join(f"<tr><th>{escape(label)}</th><td>{escape(value)}</td></tr>" for label, value in facts(report))
    head = "".join(f"<th>{escape(column)}</th>" for column in FAULT_COLUMNS)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in faults(report))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Pillarbox drill, seed {report["seed"]}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>Pillarbox drill</h1>
<p class="{report["conclusion"]}"><strong>{escape(text)}</strong></p>
<ul class="failed">{violations}</ul>
<ul class="void">{warnings}</ul>
<table>{rows}</table>
<h2>Longest latency from commit to arrival, and faults</h2>
{plot(report)}
<h2>Faults</h2>
<table><tr>{head}</tr>{body}</table>
<p>Pillarbox {escape(report["pillarbox"])}, Python {escape(report["python"])}, {escape(report["ended_at"])}.
Recovery: seconds from the fault, or from the end of an outage, until every event committed by then had arrived.</p>
</body>
</html>
"""


def plot(report: dict[str, Any]) -> str:
    """Return an SVG: the longest latency of each interval as bars, and a line per fault."""
    points = report["latency"]
    length = points[-1][0] + (points[1][0] - points[0][0] if len(points) > 1 else 1) if points else 1.0
    highest = max([point[2] for point in points] + [0.1])
    wide, high = WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN
    width = wide / max(1, len(points))

    def across(seconds: float) -> float:
        return round(MARGIN + seconds / length * wide, 1)

    bars = "".join(
        f'<rect x="{across(at)}" y="{round(HEIGHT - MARGIN - longest / highest * high, 1)}" width="{width:.1f}" '
        f'height="{round(longest / highest * high, 1)}" fill="#3b6fb6">'
        f"<title>{longest:.3f} s, {events} events</title></rect>"
        for at, events, longest in points
        if events
    )
    lines = "".join(
        f'<line x1="{across(one["at"])}" x2="{across(one["at"])}" y1="{MARGIN - 10}" y2="{HEIGHT - MARGIN}" '
        f'stroke="{"#b3141d" if one["effective"] else "#999"}" stroke-opacity="0.55">'
        f"<title>{escape(one['kind'])} at {one['at']} s</title></line>"
        for one in report["schedule"]
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="latency over time">{bars}{lines}'
        f'<text x="4" y="{MARGIN}">{highest:.2f} s</text><text x="4" y="{HEIGHT - MARGIN}">0 s</text>'
        f'<text x="{MARGIN}" y="{HEIGHT - 20}">0 s</text>'
        f'<text x="{WIDTH - MARGIN - 40}" y="{HEIGHT - 20}">{length:.0f} s</text>'
        f'<text x="{WIDTH / 2 - 60}" y="{HEIGHT - 20}">red lines: faults</text></svg>'
    )
