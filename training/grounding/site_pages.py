"""Pages of the suite `sites`: starts one copy of each site, and finds pages of different form by following links."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from html import unescape
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urljoin, urlsplit

import httpx

from envs.core.errors import ResetFailed
from envs.suites.sites.fleet import Fleet
from envs.suites.sites.kinds import KINDS, SiteName
from training.grounding.templates import Template

MOST_PAGES: Final = 12
"""Most templates of one site."""
_MOST_READ: Final = 60
"""Most pages of one site that are read to find them."""
_LINK: Final = re.compile(r"<a\b[^>]*\bhref=[\"']([^\"'#]+)", re.IGNORECASE)
_NO_PAGE: Final = re.compile(r"logout|/static/|/media/|\.(?:js|css|png|jpe?g|svg|zip|gz|xml|json|atom|rss)$")
_CONTENT: Final = re.compile(r"\d|[-_]")
"""What shows that a part of a path names content, such as a product or a thread."""


class Sites(NamedTuple):
    """Running copies."""

    templates: tuple[Template, ...]
    routes: Mapping[str, tuple[str, int]]
    """Address of each copy by its origin in the browser."""


@asynccontextmanager
async def running_sites(folder: Path) -> AsyncGenerator[Sites]:
    """Starts a copy of each site below *folder*. Raises BadInput without the extra `sites`, and ResetFailed."""
    fleet = Fleet(folder)
    names: Sequence[SiteName] = tuple(KINDS)
    try:
        try:
            await fleet.ready(names)
        except* ResetFailed as group:
            raise ResetFailed(f"a site does not start: {group.exceptions[0]}") from None
        templates: list[Template] = []
        for name in names:
            templates += await find_pages(name, fleet[name].address)
        yield Sites(tuple(templates), {KINDS[name].origin: fleet[name].address for name in names})
    finally:
        await fleet.close()


async def find_pages(name: SiteName, address: tuple[str, int]) -> list[Template]:
    """The first page of each form, breadth first from the start page."""
    origin = KINDS[name].origin
    found: dict[str, Template] = {}
    queue, known = ["/"], {"/"}
    async with httpx.AsyncClient(base_url=f"http://{address[0]}:{address[1]}", timeout=20) as client:
        for _ in range(_MOST_READ):
            if not queue or len(found) == MOST_PAGES:
                break
            path = queue.pop(0)
            reply = await client.get(path, headers={"Host": KINDS[name].host})
            if not reply.is_success or "text/html" not in reply.headers.get("content-type", ""):
                continue
            form = page_form(path)
            found.setdefault(form, Template("sites", f"{name}{form}", origin + path))
            for link in _LINK.findall(reply.text):
                target = urlsplit(urljoin(origin + path, unescape(link)))
                if f"{target.scheme}://{target.netloc}" == origin and not _NO_PAGE.search(target.path):
                    address_in_site = target.path + (f"?{target.query}" if target.query else "")
                    if address_in_site not in known:
                        known.add(address_in_site)
                        queue.append(address_in_site)
    return list(found.values())


def page_form(path: str) -> str:
    """The form of the page at *path*: parts that name content, and the query's values, are left out."""
    parts = urlsplit(path)
    shown = "/".join("*" if _CONTENT.search(part) else part for part in parts.path.split("/"))
    asked = "&".join(sorted({pair.partition("=")[0] for pair in parts.query.split("&") if pair}))
    return shown + (f"?{asked}" if asked else "")
