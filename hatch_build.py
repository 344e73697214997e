"""Completes the metadata at build time: project URLs, and a README whose links work outside the repository."""

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

VARIABLE = "PILLARBOX_REPOSITORY"
_URL = re.compile(r"https://[^\s/]+(?:/[^\s/]+)+")
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://|#)([^)\s]+)\)")
_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


class MetadataHook(MetadataHookInterface):
    """Hatchling finds it by its base class."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        repository = os.environ.get(VARIABLE, self.config["repository"]).rstrip("/")
        if repository and not _URL.fullmatch(repository):
            raise ValueError(
                f"repository {repository!r} is not the address of a repository; write https://host/owner/name into "
                "pyproject.toml, or leave it empty"
            )
        tag = f"v{metadata['version']}"
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": rewritten(text, repository, tag)}
        metadata["urls"] = urls(repository, tag)


def urls(repository: str, tag: str) -> dict[str, str]:
    """The project URLs; none while the repository has no public address."""
    if not repository:
        return {}
    return {
        "Homepage": repository,
        "Documentation": f"{repository}/blob/{tag}/docs/README.md",
        "Changelog": f"{repository}/blob/{tag}/CHANGELOG.md",
        "Issues": f"{repository}/issues",
        "Source": repository,
    }


def rewritten(text: str, repository: str, tag: str) -> str:
    """The README with absolute links to the files of the release.

    Without a public address a link becomes its text and the path, which the source distribution has; a picture is
    left out.
    """

    def link(found: re.Match[str]) -> str:
        picture, label, path = found.groups()
        if repository:
            return f"{picture}[{label}]({repository}/{'raw' if picture else 'blob'}/{tag}/{path})"
        return "" if picture else f"{label} (`{path}`)"

    parts = _FENCE.split(text)
    return "".join(part if part.startswith("```") else _LINK.sub(link, part) for part in parts)
