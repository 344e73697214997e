"""Processes that a benchmark starts: relays, those of peers included, and writers.

A peer's process runs in an environment of its own, in which `pillarbox` is not installed: `control` and the modules of
peers import the standard library and the peer, nothing else.
"""
