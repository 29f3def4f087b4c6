"""Generates the pages of the Python API reference; mkdocstrings adds the docstrings."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from inspect import getsource

SECTIONS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("agent", "Running tasks", ("agent", "agent.progress", "agent.inspection.replay", "agent.inspection.report")),
    (
        "extending",
        "Extending",
        (
            "agent.episode.policy",
            "agent.episode.approval",
            "agent.episode.tools",
            "envs.core.tasks",
            "envs.core.settings",
            "envs.browser.chromium",
            "envs.browser.session",
            "envs.suites.entry",
            "envs.suites.open_web",
            "models",
            "models.provider",
            "planners",
            "planners.entry",
            "judges",
            "judges.entry",
            "judges.ratings",
            "training.grpo.rewards",
            "training.mira.added_rewards",
            "training.data_sets.registry",
            "training.data_sets.items",
            "training.data_sets.rows",
        ),
    ),
    (
        "data",
        "Pages, actions and traces",
        (
            "envs.core.observation",
            "envs.core.actions",
            "envs.core.action_languages",
            "envs.core.trace",
            "envs.core.errors",
        ),
    ),
    ("training", "Training", ("training.loop.sft", "training.loop.evaluation", "training.loop.curriculum")),
)
"""File name, title and modules of each page. A page shows a module's `__all__`, or else its public classes, functions
and type aliases."""
RULE = "Stable: the names on the Python API pages. Names that are not listed there can change in any version."
_ALIAS = re.compile(r"[A-Z]\w*[a-z]\w*")
"""Names of type aliases; constants are in capitals."""


def api_pages() -> dict[str, str]:
    """Markdown by path below the documentation's folder."""
    return {f"reference/api/{name}.md": _page(title, modules) for name, title, modules in SECTIONS}


def _page(title: str, modules: tuple[str, ...]) -> str:
    parts = [f"# {title}\n", f"Generated from the code. {RULE}\n"]
    for module in modules:
        parts.append(
            f"::: {module}\n    options:\n      heading_level: 2\n      show_root_full_path: true\n      members: []\n"
        )
        parts += [f"::: {identifier}\n    options:\n      heading_level: 3\n" for identifier in identifiers(module)]
    return "\n".join(parts)


def identifiers(module: str) -> list[str]:
    """Full names of the public API of *module*, in the order of its `__all__` or of definition."""
    loaded = import_module(module)
    listed = getattr(loaded, "__all__", None)
    names = _defined(getsource(loaded)) if listed is None else listed
    return [f"{module}.{name}" for name in names]


def _defined(source: str) -> list[str]:
    """The public classes, functions and type aliases that a module defines."""
    found: list[str] = []
    for node in ast.parse(source).body:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found += [] if name.startswith("_") else [name]
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                found += [name] if _ALIAS.fullmatch(name) else []
            case _:
                pass
    return found
