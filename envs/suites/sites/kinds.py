"""The five sites by name: what each is, under which host the browser sees it, and who can be logged in there."""

from __future__ import annotations

from typing import Literal

from envs.core.record import Record

SiteName = Literal["shop", "forum", "code", "cms", "map"]


class SiteKind(Record):
    """One of the suite's applications."""

    name: SiteName
    title: str
    """What people call it, in reports and task texts."""
    application: str
    """The software behind it and its licence."""
    host: str
    """The name under which the agent's browser reaches it. Every copy has the same one: the boundary's route leads
    it to the copy's own port, so that pages, traces and keys are alike in all of them."""
    personas: tuple[str, ...]
    """Accounts of which the golden state holds a live login; the first is the usual one. Empty: no accounts."""
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
"""By name, in the order in which they are listed."""
