"""The command line; `exits` lists the exit codes."""

from __future__ import annotations

import sys
from importlib import import_module


def main() -> None:
    """Entry point of `pillarbox`."""
    try:
        import_module("click")
    except ImportError:
        print('The command line needs click: pip install "pillarbox[cli]"', file=sys.stderr)
        raise SystemExit(1) from None
    from pillarbox.ops.cli.root import pillarbox

    pillarbox()
