"""Metrics and health of a relay or a consumer over HTTP.

snapshot.py    a cached snapshot of the store
queues.py      the depths of dead-letter queues, queried in the background
checks.py      liveness, readiness and health: pure decisions
pages.py       /metrics, /livez, /readyz, /health
http_server.py the port
relay.py       a relay's pages
consumer.py    a consumer's pages
exporter.py    a store's pages
"""
