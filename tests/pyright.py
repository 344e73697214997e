"""`python -m tests.pyright [arguments]`: pyright, which checks types as the editors of users do.

It is installed apart from the other packages, because it brings a Node.js of its own: see `requirements/pyright.in`.
"""

import sys
from importlib import import_module
from pathlib import Path

PACKAGES = Path(sys.prefix) / "pyright"

if __name__ == "__main__":
    if not PACKAGES.is_dir():
        sys.exit(f"there is no {PACKAGES}; run `make venv`")
    sys.path.insert(0, str(PACKAGES))
    import_module("basedpyright.pyright").main()
