"""`pillarbox` in a process whose application has configured OpenTelemetry, as `opentelemetry-instrument` does.

Its first argument is the file for its spans, a line of JSON each; the rest is the command.
"""

import json
import sys
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from opentelemetry.trace import set_tracer_provider

from pillarbox.ops.cli import main


def described(span: ReadableSpan) -> dict[str, Any]:
    reported = json.loads(span.to_json())
    return {
        "name": reported["name"],
        "kind": span.kind.name,
        "parent": reported["parent_id"],
        "attributes": reported["attributes"],
        "links": [f"0x{link.context.span_id:016x}" for link in span.links],
        "trace_id": reported["context"]["trace_id"],
        "span_id": reported["context"]["span_id"],
        "tracestate": span.context.trace_state.to_header() if span.context else "",
    }


if __name__ == "__main__":
    _, file, *command = sys.argv
    provider = TracerProvider()
    # Held open until the process ends.
    exporter = ConsoleSpanExporter(out=open(file, "w"), formatter=lambda span: json.dumps(described(span)) + "\n")  # noqa: SIM115
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    set_tracer_provider(provider)
    sys.argv = ["pillarbox", *command]
    main()
