"""The cost of a regular expression: some masking rules would backtrack for years on the wrong text.

A match backtracks wherever a part may be longer or shorter. `ways` counts in how many ways all parts before the end can
match a text; parts without backtracking (`a++`, `(?>…)`) count once.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Private modules of `re`: nothing else takes a pattern apart.
codes: Any = import_module("re._constants")
parser: Any = import_module("re._parser")

SEARCHED = 1000
"""Characters of one text that rules search; the rest is not shown."""
MOST_WAYS = 5000
"""Ways from one position: at every position of a text, a search takes some milliseconds."""


def ways(pattern: str) -> float:
    """Return in how many ways a pattern can match at one position of a text of `SEARCHED` characters."""
    return _sequence(list(parser.parse(pattern)), last=True)


def _sequence(parts: list[Any], *, last: bool) -> float:
    found = 1.0
    for number, (operation, given) in enumerate(parts):
        found *= _part(operation, given, last=last and number == len(parts) - 1)
    return found


def _part(operation: Any, given: Any, *, last: bool) -> float:
    match operation:
        case codes.MAX_REPEAT | codes.MIN_REPEAT:
            least, most, body = given
            most = SEARCHED if most is codes.MAXREPEAT else min(most, SEARCHED)
            within = _sequence(list(body), last=False)
            if within > 1:
                return min(within**most, 1e18) if most < 100 else 1e18
            # Nothing after it can fail, so that it does not backtrack.
            return 1.0 if last else float(most - min(least, most) + 1)
        case codes.SUBPATTERN:
            return _sequence(list(given[-1]), last=last)
        case codes.BRANCH:
            return sum(_sequence(list(branch), last=last) for branch in given[1])
        case codes.POSSESSIVE_REPEAT:
            return max(1.0, _sequence(list(given[2]), last=False))
        case codes.ATOMIC_GROUP:
            return max(1.0, _sequence(list(given), last=False))
        case codes.ASSERT | codes.ASSERT_NOT:
            return _sequence(list(given[1]), last=True)
        case codes.GROUPREF_EXISTS:
            _, yes, no = given
            return _sequence(list(yes), last=last) + (_sequence(list(no), last=last) if no else 1)
        case _:
            return 1.0
