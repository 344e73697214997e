"""`python -m tests.frameworks.newest_locks OPTIONS`: write the locks whose packages need a newer Python than this one.

They are compiled with the oldest Python that can use them: a newer one needs no package more.
"""

import os
import subprocess
import sys
import sysconfig
from collections.abc import Sequence

from tests.frameworks.environment import LOCKS, NEWEST
from tests.versions import newer_pythons


def main(options: Sequence[str]) -> None:
    if not (pythons := newer_pythons()):
        print(f"requirements/frameworks/*{NEWEST}.txt stay as they are: no newer Python is installed", file=sys.stderr)
        return
    for source in sorted(LOCKS.glob(f"*{NEWEST}.in")):
        compiler = [pythons[0], "-m", "piptools", "compile", *options]
        # pip-tools and what it needs are pure Python: the newer Python takes those of this environment.
        subprocess.run(
            [*compiler, "--output-file", f"{source.stem}.txt", source.name],
            cwd=LOCKS,
            env=os.environ | {"PYTHONPATH": sysconfig.get_path("purelib")},
            check=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
