"""What every process of both applications needs at run time.

variables.py     environment variables under the names that Spring derives from properties
correlation.py   the correlation id of a request or an event, in headers and log lines
tracing.py       OpenTelemetry: spans of requests, and where spans go
metrics.py       metrics of HTTP requests, and the page /metrics
timestamps.py    times as text
topology.py      the topology on RabbitMQ, declared at the start
consuming.py     the health of a process that consumes
port.py          /metrics and /health of a process that serves nothing else
relaying.py      `pillarbox relay` with the settings of an application, in this process
demo_servers.py  the temporary database and the queues of a demo
"""
