"""`python -m tests.extremes.packages`: install what only these tests need, if root runs it."""

from tests.extremes.clocks import LIBFAKETIME
from tests.servers import debian

if __name__ == "__main__":
    raise SystemExit(debian.main((LIBFAKETIME, debian.COMPILER)))
