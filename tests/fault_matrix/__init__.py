"""The fault matrix: every fault on every engine, and the tests that show it.

The rows are in `processes.py`, `databases.py`, `brokers.py`, `links.py` and `load.py`; to fill a cell, replace its
entry. `python -m tests.fault_matrix` (`make faults`) runs the tests and prints the result of each cell, and
`python -m tests.docs.faults_page` writes docs/explanation/faults.md.
"""
