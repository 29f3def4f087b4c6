"""Registry of all task templates by name, and the database noise of each site."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import Any

from envs.core.errors import BadInput
from envs.suites.sites.changes import Noise
from envs.suites.sites.kinds import SiteName
from envs.suites.sites.templates import Template

AnyTemplate = Template[Any]
MODULES = ("shop", "shop_admin", "forum", "code", "cms", "map", "multi")
NOISE_OF: Mapping[SiteName, str] = {"shop": "shop", "forum": "forum", "code": "code", "cms": "cms"}
"""Site to the module below `tasks` that defines its `NOISE`."""


@cache
def templates() -> Mapping[str, AnyTemplate]:
    """All templates by name, in the order of `MODULES`. Raises BadInput if two templates have the same name."""
    by_name: dict[str, AnyTemplate] = {}
    for module in _modules():
        for template in module.TEMPLATES:
            if template.name in by_name:
                raise BadInput(f"two templates are called {template.name!r}")
            by_name[template.name] = template
    return by_name


def template(name: str) -> AnyTemplate:
    """The template *name*. Raises BadInput if the name is unknown."""
    known = templates()
    if name not in known:
        raise BadInput(f"no template {name!r}; list them with: mira tasks --suite sites")
    return known[name]


@cache
def noise(site: SiteName) -> Noise:
    """The changes that a page visit alone makes in the database of *site*."""
    module = NOISE_OF.get(site)
    return importlib.import_module(f"envs.suites.sites.tasks.{module}").NOISE if module else Noise()


def _modules() -> Sequence[ModuleType]:
    return [importlib.import_module(f"envs.suites.sites.tasks.{name}") for name in MODULES]
