"""Overrides Oscar's listing, shipping methods and one table through its class loader.

`load` is `OSCAR_DYNAMIC_CLASS_LOADER`. Oscar calls it for every replaceable class.
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
"""(module in Oscar, class) -> our module with the class of that name."""


def load(module_label: str, classnames: Sequence[str], module_prefix: str) -> list[Any]:
    """Loads classes by name: ours if `REPLACED` lists them, else Oscar's."""
    classes: list[Any] = []
    for name in classnames:
        ours = REPLACED.get((module_label, name))
        if ours is None:
            classes += default_class_loader(module_label, [name], module_prefix)
        else:
            classes.append(getattr(import_module(ours), name))
    return classes


class OriginalImageThumbnailer(AbstractThumbnailer):
    """Uses the original image as its thumbnail. The images are small, and the server must not write files."""

    def generate_thumbnail(self, source: ImageFieldFile, **opts: object) -> ImageFieldFile:
        return source

    def delete_thumbnails(self, source: ImageFieldFile) -> None:
        """Does nothing: there are no thumbnails."""
