"""Metrics and health of a relay or a consumer over HTTP.

looking.py     a cached snapshot of the store
queues.py      the depths of dead-letter queues, queried in the background
judging.py     liveness, readiness and health: pure decisions
pages.py       /metrics, /livez, /readyz, /health
serving.py     the port
relay.py       a relay's pages
consumer.py    a consumer's pages
"""
