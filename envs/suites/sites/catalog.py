"""All templates by name, and the noise of each site."""

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
"""Site to the module that knows its noise."""


@cache
def templates() -> Mapping[str, AnyTemplate]:
    """Every template, in the order of the modules. Raises BadInput where two have one name."""
    found: dict[str, AnyTemplate] = {}
    for module in _modules():
        for template in module.TEMPLATES:
            if template.name in found:
                raise BadInput(f"two templates are called {template.name!r}")
            found[template.name] = template
    return found


def template(name: str) -> AnyTemplate:
    """Raises BadInput for an unknown name."""
    known = templates()
    if name not in known:
        raise BadInput(f"no template {name!r}; list them with: mira tasks --suite sites")
    return known[name]


@cache
def noise(site: SiteName) -> Noise:
    """What a visit alone changes in a site's database."""
    module = NOISE_OF.get(site)
    return importlib.import_module(f"envs.suites.sites.tasks.{module}").NOISE if module else Noise()


def _modules() -> Sequence[ModuleType]:
    return [importlib.import_module(f"envs.suites.sites.tasks.{name}") for name in MODULES]
