"""`pillarbox doctor`: check settings, store, transports, guarantees and symptoms, and name a fix for each finding.

Invariants: a check changes nothing; every check has a timeout; if a check cannot run, it says so and the others
continue. `docs/reference/doctor.md` lists the checks; a test compares the page with the code.
"""

from pillarbox.ops.doctor.examination import Report, examine, unreadable

__all__ = ["Report", "examine", "unreadable"]
