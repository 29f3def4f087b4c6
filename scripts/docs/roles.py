"""Shows the reStructuredText of docstrings, such as :class:`envs.tasks.Suite`, as Markdown."""

from __future__ import annotations

import re
from typing import Any

import griffe


class Roles(griffe.Extension):
    """Rewrites each docstring once, when its object is loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", obj.docstring.value)
            obj.docstring.value = re.sub(r"::$", ":", text, flags=re.MULTILINE)
