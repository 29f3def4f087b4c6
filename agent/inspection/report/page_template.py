"""Renders a self-contained HTML page whose content-security policy permits only its own style and scripts."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

import jinja2


def csp_hash(text: str) -> str:
    """The SHA-256 of *text* in base 64, as a content-security policy names an inline style or script."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def render_page(template: Path, style: str, **values: Any) -> str:
    """The page of the Jinja2 file *template*, which gets *values*, `style` and `style_hash`. Values are escaped. Raises
    jinja2.UndefinedError for a missing one."""
    loader = jinja2.FileSystemLoader(template.parent)
    templates = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    return templates.get_template(template.name).render(style=style, style_hash=csp_hash(style), **values)
