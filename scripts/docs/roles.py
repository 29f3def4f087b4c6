"""Shows the reStructuredText of docstrings, such as :class:`envs.core.tasks.Suite`, as Markdown."""

from __future__ import annotations

import re
from typing import Any

import griffe


class Roles(griffe.Extension):
    """Rewrites the docstrings of a package after it is loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        _rewrite(obj)

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        _rewrite(pkg)


def _rewrite(obj: griffe.Object) -> None:
    if obj.docstring is not None:
        text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", obj.docstring.value)
        obj.docstring.value = re.sub(r"::$", ":", text, flags=re.MULTILINE)
