"""Logs, metrics and traces: observers of relays and consumers. None of them may raise or block."""
