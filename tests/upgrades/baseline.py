"""`python -m tests.upgrades.baseline [COMMIT]`: write BASELINE for a commit, by default the current one."""

import hashlib
import subprocess
import sys
from pathlib import Path
from shutil import which
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FILE = Path(__file__).with_name("BASELINE")
STORES = "src/pillarbox/stores"
ENGINES = ("postgres", "sqlite", "mariadb")


class Baseline(NamedTuple):
    """The commit from which upgrades start, and its migration files: path → SHA-256."""

    commit: str
    files: dict[str, str]


def read_baseline() -> Baseline:
    pairs = dict(line.split() for line in FILE.read_text(encoding="utf-8").splitlines())
    return Baseline(pairs.pop("commit"), pairs)


def migrations() -> list[str]:
    """The migration files of the tree, such as `postgres/0001_initial.sql`."""
    return [f"{engine}/{path.name}" for engine in ENGINES for path in sorted((ROOT / folder_of(engine)).glob("*.sql"))]


def folder_of(engine: str) -> str:
    return f"{STORES}/{engine}/sql/migrations"


def path_of(name: str) -> str:
    """The path of a migration file in the tree."""
    engine, _, file = name.partition("/")
    return f"{folder_of(engine)}/{file}"


def checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, check=False)


def has_commit(commit: str) -> bool:
    return _has_git() and git("cat-file", "-e", f"{commit}^{{commit}}").returncode == 0


def is_whole_repository() -> bool:
    """Whether this tree is a clone with its whole history: not an exported tree, not a shallow clone."""
    return _has_git() and git("rev-parse", "--is-shallow-repository").stdout.strip() == b"false"


def _has_git() -> bool:
    return (ROOT / ".git").exists() and which("git") is not None


def main(commit: str = "HEAD") -> None:
    found = git("rev-parse", "--verify", f"{commit}^{{commit}}")
    if found.returncode:
        raise SystemExit(found.stderr.decode())
    commit = found.stdout.decode().strip()
    lines = [f"commit {commit}"]
    for name in migrations():
        shown = git("show", f"{commit}:{path_of(name)}")
        if shown.returncode == 0:
            lines.append(f"{name} {checksum(shown.stdout)}")
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
