"""What the site is made of: the Markdown of the repository at its own paths, so that every link works in both.

The menu is made of the folders. A page that is added to one of them is in it.
"""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
MENU = {
    "Tutorial": "docs/tutorial/*.md",
    "How-to": "docs/how-to/*.md",
    "Reference": "docs/reference/*.md",
    "Explanation": "docs/explanation/*.md",
    "Decisions": "docs/decisions/*.md",
    "Applications": "apps/**/*.md",
    "Examples": "examples/**/*.md",
    "Project": "[A-Z]*.md",
}
BESIDE = (
    "docs/site/*.css",
    "docs/pictures/*.svg",
    "docs/pictures/*.png",
    "docs/reference/*.json",
    "docs/samples/*.toml",
    "examples/**/*.py",
    "apps/**/*.py",
    "apps/**/*.toml",
)
"""What pages look like, show or lead to."""
FIRST = ("README.md", "docs/README.md")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Hand over the pages of the repository instead of those in one folder, and the theme's own files as they are."""
    menu = {title: [path for path in found(pattern) if path not in FIRST] for title, pattern in MENU.items()}
    config.nav = [*FIRST, *({title: pages} for title, pages in menu.items() if pages)]
    paths = [*FIRST, *(page for pages in menu.values() for page in pages), *(p for each in BESIDE for p in found(each))]
    own = [File(path, str(ROOT), config.site_dir, config.use_directory_urls) for path in paths]
    return Files([*own, *(file for file in files if file.src_dir != config.docs_dir)])


def found(pattern: str) -> list[str]:
    """Paths from the root of the repository, the introduction of a folder first."""
    paths = [path.relative_to(ROOT).as_posix() for path in ROOT.glob(pattern) if "__pycache__" not in path.parts]
    return sorted(paths, key=lambda path: (not path.endswith("README.md"), path))
