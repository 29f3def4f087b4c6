"""Hooks of the documentation site: add the generated reference and the pages at the root of the repository."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
FROM_ROOT = {"CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md", "CHANGELOG.md": "changelog.md"}


def on_files(files: Files, *, config: MkDocsConfig, **_: Any) -> Files:
    """Adds pages that are generated in each build and not stored."""
    from_root_folder = {
        target: from_root((ROOT / name).read_text(encoding="utf-8")) for name, target in FROM_ROOT.items()
    }
    for path, text in {**reference(), **from_root_folder}.items():
        files.append(File.generated(config, path, content=text))
    return files


def reference() -> Mapping[str, str]:
    """The generated reference: Markdown by path below the documentation's folder."""
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))  # the command `mkdocs` does not search the working directory
    from scripts.docs.actions_reference import actions_page
    from scripts.docs.api_reference import api_pages
    from scripts.docs.cli_reference import cli_page
    from scripts.docs.config_reference import config_page

    own = {"cli": cli_page, "configuration": config_page, "actions": actions_page}
    return {**{f"reference/{name}.md": page() for name, page in own.items()}, **api_pages()}


def from_root(text: str) -> str:
    """*text* of a page at the root with links relative to the documentation's folder."""
    for name, target in FROM_ROOT.items():
        text = text.replace(f"]({name}", f"]({target}")
    return re.sub(r"\]\(docs/", "](", text)
