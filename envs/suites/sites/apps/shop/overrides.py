"""Where the shop differs from Oscar's defaults: its listing, shipping methods and a table, by Oscar's own hook.

`load` is `OSCAR_DYNAMIC_CLASS_LOADER`: Oscar asks it for every class that a shop may replace.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from django.db.models.fields.files import ImageFieldFile
from oscar.core.loading import default_class_loader
from oscar.core.thumbnails import AbstractThumbnailer

REPLACED = {
    ("shipping.repository", "Repository"): "envs.suites.sites.apps.shop.shipping",
    ("search.views.base", "BaseSearchView"): "envs.suites.sites.apps.shop.listing",
    ("dashboard.tables", "DashboardTable"): "envs.suites.sites.apps.shop.tables",
}
"""(module in Oscar, class) -> the module of ours that has a class of that name."""


def load(module_label: str, classnames: Sequence[str], module_prefix: str) -> list[Any]:
    """The classes by name: ours where `REPLACED` names one, else Oscar's."""
    found: list[Any] = []
    for name in classnames:
        ours = REPLACED.get((module_label, name))
        if ours is None:
            found += default_class_loader(module_label, [name], module_prefix)
        else:
            found.append(getattr(import_module(ours), name))
    return found


class WholePicture(AbstractThumbnailer):
    """Shows the picture itself: ours are thumbnails already, and nothing is written while the shop is served."""

    def generate_thumbnail(self, source: ImageFieldFile, **opts: object) -> ImageFieldFile:
        return source

    def delete_thumbnails(self, source: ImageFieldFile) -> None:
        """There are none."""
