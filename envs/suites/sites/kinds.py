"""The five sites by name, each with its application, its host in the browser and its personas."""

from __future__ import annotations

from typing import Literal

from envs.core.record import Record

SiteName = Literal["shop", "forum", "code", "cms", "map"]


class SiteKind(Record):
    """One site of the suite."""

    name: SiteName
    title: str
    """Its name in reports and task texts."""
    application: str
    """The software and its licence."""
    host: str
    """Its host in the agent's browser, the same for every copy. The proxy routes it to the copy's port, so that pages,
    traces and element keys are equal in all copies."""
    personas: tuple[str, ...]
    """Accounts with a live login in the golden state; the first is the default. Empty: the site has no accounts."""
    has_database: bool = True

    @property
    def origin(self) -> str:
        return f"http://{self.host}"


KINDS: dict[SiteName, SiteKind] = {
    kind.name: kind
    for kind in (
        SiteKind(
            name="shop",
            title="the shop",
            application="django-oscar (BSD-3-Clause)",
            host="shop.test",
            personas=("customer", "staff"),
        ),
        SiteKind(
            name="forum",
            title="the forum",
            application="django-spirit (MIT)",
            host="forum.test",
            personas=("member", "moderator"),
        ),
        SiteKind(
            name="code",
            title="the code site",
            application="Trac (BSD-3-Clause)",
            host="code.test",
            personas=("developer", "admin"),
        ),
        SiteKind(
            name="cms",
            title="the CMS",
            application="Wagtail (BSD-3-Clause)",
            host="cms.test",
            personas=("editor",),
        ),
        SiteKind(
            name="map",
            title="the map",
            application="our page over OpenStreetMap data (ODbL) with Leaflet (BSD-2-Clause)",
            host="map.test",
            personas=(),
            has_database=False,
        ),
    )
}
"""All sites by name, in the order of lists."""
