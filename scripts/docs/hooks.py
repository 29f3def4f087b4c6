"""Hooks of the documentation site: add the generated reference and the pages at the root of the repository."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from api_reference import api_pages
from cli_reference import cli_page
from config_reference import config_page
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
FROM_ROOT = {"CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md", "CHANGELOG.md": "changelog.md"}


def on_files(files: Files, *, config: MkDocsConfig, **_: Any) -> Files:
    """Adds pages that are generated in each build and not stored."""
    pages = {"reference/cli.md": cli_page(), "reference/configuration.md": config_page(), **api_pages()}
    pages |= {target: from_root((ROOT / name).read_text(encoding="utf-8")) for name, target in FROM_ROOT.items()}
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def from_root(text: str) -> str:
    """*text* of a page at the root with links relative to the documentation's folder."""
    for name, target in FROM_ROOT.items():
        text = text.replace(f"]({name}", f"]({target}")
    return re.sub(r"\]\(docs/", "](", text)
