"""Generates the pages of the Python API reference; mkdocstrings adds the docstrings."""

from __future__ import annotations

from importlib import import_module

SECTIONS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("agent", "Running tasks", ("agent",)),
    (
        "extending",
        "Extending",
        (
            "agent.episode.policy",
            "agent.progress",
            "envs.core.tasks",
            "envs.suites.entry",
            "envs.suites.open_web",
            "models",
            "models.provider",
            "planners",
            "planners.entry",
            "judges",
            "judges.entry",
        ),
    ),
    (
        "data",
        "Pages, actions and traces",
        ("envs.core.observation", "envs.core.actions", "envs.core.trace", "envs.core.errors"),
    ),
    ("training", "Training", ("training.loop.sft", "training.loop.evaluation", "training.loop.curriculum")),
)
"""File name, title and modules of each page. A page shows a module's `__all__`, or else its public names."""


def api_pages() -> dict[str, str]:
    """Markdown by path below the documentation's folder."""
    return {f"reference/api/{name}.md": _page(title, modules) for name, title, modules in SECTIONS}


def _page(title: str, modules: tuple[str, ...]) -> str:
    parts = [f"# {title}\n", "Generated from the code. Names that are not listed here may change in any version.\n"]
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
    if listed is None:
        listed = [name for name, value in vars(loaded).items() if _is_own(name, value, module)]
    return [f"{module}.{name}" for name in listed]


def _is_own(name: str, value: object, module: str) -> bool:
    is_public = not name.startswith("_")
    return is_public and getattr(value, "__module__", None) == module and callable(value)
