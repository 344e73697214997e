"""The files of the site and its menu.

The pages keep their paths in the repository, so that every link works on the site and in the repository. The menu
lists pages in the order of `docs/README.md`.
"""

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))
import python_reference

ROOT = Path(__file__).resolve().parents[2]
INDEX = "docs/README.md"
MENU = {
    "Tutorial": "docs/tutorial/*.md",
    "How-to guides": "docs/how-to/*.md",
    "Reference": "docs/reference/*.md",
    "Explanation": "docs/explanation/*.md",
    "Applications": "apps/**/*.md",
    "Examples": "examples/**/*.md",
    "Contributing": "docs/contributing/*.md",
    "Decisions": "docs/decisions/*.md",
    "Project": "[A-Z]*.md",
}
ASSETS = (
    "docs/site/*.css",
    "docs/pictures/*.svg",
    "docs/pictures/*.png",
    "docs/reference/*.json",
    "docs/evidence/*.json",
    "docs/samples/*.toml",
    "examples/**/*.py",
    "apps/**/*.py",
    "apps/**/*.toml",
)
"""Files that pages display or link to."""
FIRST = ("README.md", INDEX)
_LINK = re.compile(r"\]\(([\w/.-]+\.md)\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Return the pages of the repository and the theme's own files."""
    menu: dict[str, list[Any]] = {
        title: [path for path in found(pattern) if path not in FIRST] for title, pattern in MENU.items()
    }
    generated = python_reference.pages(ROOT)
    menu["Reference"].append({"Python": sorted(generated, key=lambda path: not path.endswith("index.md"))})
    config.nav = [*FIRST, *({title: pages} for title, pages in menu.items() if pages)]
    paths = [
        *FIRST,
        *(page for pages in menu.values() for page in pages if isinstance(page, str)),
        *(path for assets in ASSETS for path in found(assets)),
    ]
    own = [File(path, str(ROOT), config.site_dir, config.use_directory_urls) for path in paths]
    made = [File.generated(config, path, content=text) for path, text in generated.items()]
    return Files([*own, *made, *(file for file in files if file.src_dir != config.docs_dir)])


def found(pattern: str) -> list[str]:
    """Return paths from the root of the repository: in the order of the index, then introductions, then by name."""
    linked = [f"docs/{target}" for target in _LINK.findall((ROOT / INDEX).read_text(encoding="utf-8"))]
    paths = [path.relative_to(ROOT).as_posix() for path in ROOT.glob(pattern) if "__pycache__" not in path.parts]
    return sorted(
        paths,
        key=lambda path: (
            linked.index(path) if path in linked else len(linked),
            not path.endswith("README.md"),
            path,
        ),
    )
