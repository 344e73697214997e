"""`pillarbox` in a process whose application has told OpenTelemetry where spans go, as `opentelemetry-instrument` does.

Its first argument is the file for its spans, a line of JSON each; the rest is the command.
"""

import json
import sys

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from opentelemetry.trace import set_tracer_provider

from pillarbox.ops.cli import main


def as_line(span: ReadableSpan) -> str:
    told = json.loads(span.to_json())
    return json.dumps({"name": told["name"], "parent": told["parent_id"], **told["context"]}) + "\n"


if __name__ == "__main__":
    _, file, *command = sys.argv
    provider = TracerProvider()
    # Held open until the process ends.
    provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=open(file, "w"), formatter=as_line)))  # noqa: SIM115
    set_tracer_provider(provider)
    sys.argv = ["pillarbox", *command]
    main()
