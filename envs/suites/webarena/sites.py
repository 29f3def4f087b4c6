"""Addresses of WebArena's sites, from one environment variable each, and their placeholders in task files."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from envs.core.errors import BadInput
from envs.security.allowlist import Origins, origin_of
from envs.suites.webarena.task import Site, Task

VARIABLES: dict[Site, str] = {
    "shopping": "WA_SHOPPING",
    "shopping_admin": "WA_SHOPPING_ADMIN",
    "reddit": "WA_REDDIT",
    "gitlab": "WA_GITLAB",
    "map": "WA_MAP",
    "wikipedia": "WA_WIKIPEDIA",
    "homepage": "WA_HOMEPAGE",
}
PUBLISHED: dict[Site, tuple[str, ...]] = {
    "reddit": ("reddit.com", "www.reddit.com"),
    "shopping": ("onestopmarket.com",),
    "gitlab": ("gitlab.com",),
    "wikipedia": ("wikipedia.org",),
    "map": ("openstreetmap.org", "www.openstreetmap.org"),
}
"""Hosts of the original sites, which reference answers cite."""

CATEGORIES: dict[Site, str] = {
    "shopping": "shop",
    "shopping_admin": "shop_admin",
    "reddit": "forum",
    "gitlab": "code",
    "map": "map",
    "wikipedia": "wiki",
    "homepage": "open",
}
MANY_SITES = "multi"

_PLACEHOLDER = re.compile("__(" + "|".join(site.upper() for site in sorted(VARIABLES, key=len, reverse=True)) + ")__")
_BY_NAME: dict[str, Site] = {site.upper(): site for site in VARIABLES}


def category(task: Task) -> str:
    return CATEGORIES[task.sites[0]] if len(set(task.sites)) == 1 else MANY_SITES


@dataclass(frozen=True, slots=True)
class Sites:
    """The configured addresses, without a trailing slash."""

    urls: Mapping[Site, str] = field(default_factory=dict[Site, str])

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Sites:
        """Reads the environment variables. Raises BadInput for a value that is no http or https address."""
        environ = os.environ if environ is None else environ
        urls: dict[Site, str] = {}
        for site, variable in VARIABLES.items():
            value = environ.get(variable, "").strip()
            if value:
                urls[site] = _canonical(value, variable)
        return cls(urls)

    def require(self, task: Task) -> None:
        """Raises BadInput with the names of the variables that *task* needs and that are not set."""
        missing = [VARIABLES[site] for site in dict.fromkeys(task.sites) if site not in self.urls]
        if missing:
            raise BadInput(
                f"task {task.id} uses {', '.join(dict.fromkeys(task.sites))}: set {', '.join(missing)} to the "
                "address of your copy"
            )

    def fill(self, text: str, *, escape: bool = False) -> str:
        """Replaces placeholders such as `__SHOPPING__` in *text* by addresses. *escape*: *text* is a pattern.

        Raises BadInput with the name of a variable that is not set.
        """

        def address(match: re.Match[str]) -> str:
            site = _BY_NAME[match[1]]
            if site not in self.urls:
                raise BadInput(f"the task contains {match[0]}, but {VARIABLES[site]} is not set")
            return re.escape(self.urls[site]) if escape else self.urls[site]

        return _PLACEHOLDER.sub(address, text)

    def neutral(self, text: str) -> str:
        """Replaces every address of a site in *text*, local or published, by its placeholder.

        So an answer that cites a local copy equals a reference that cites `http://www.reddit.com`.
        """
        for site in sorted(self.urls, key=lambda site: len(self.urls[site]), reverse=True):
            known = [re.escape(self.urls[site]), *(rf"https?://{re.escape(host)}" for host in PUBLISHED.get(site, ()))]
            text = re.sub(rf"(?:{'|'.join(known)})(?![\w:-])", f"__{site.upper()}__", text, flags=re.IGNORECASE)
        return text

    def origins(self, allow: Sequence[str] = ()) -> Origins:
        """Rules for these sites plus the rules of *allow*. Raises BadInput for an invalid rule."""
        origins = Origins.parse(allow)
        for url in self.urls.values():
            origins = origins.with_url(url)
        return origins


def _canonical(url: str, variable: str) -> str:
    """The address in the browser's spelling, so that patterns match."""
    origin = origin_of(url)
    if origin is None:
        raise BadInput(f"{variable}={url!r} is not an http or https address: write http://HOST:PORT")
    return f"{origin}{urlsplit(url).path.rstrip('/')}"
