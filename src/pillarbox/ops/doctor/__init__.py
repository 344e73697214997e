"""`pillarbox doctor`: is everything as it should be, from the settings to the symptoms, and if not, what mends it?

What must stay true: nothing is ever changed; every check is bounded; one that cannot be made says so, and the rest goes
on. The checks are listed in `docs/reference/doctor.md`, which a test compares with the code.
"""

from pillarbox.ops.doctor.examining import Report, examine, unreadable

__all__ = ["Report", "examine", "unreadable"]
