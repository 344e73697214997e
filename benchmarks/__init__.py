"""Benchmarks that compare contenders within one run, because results of different machines are not comparable."""
