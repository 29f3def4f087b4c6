"""Where the sites of WebArena are: one environment variable each, and the placeholders that stand for them."""

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
"""Hosts that the benchmark's authors pretend the sites have: reference answers cite them."""

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
    """The addresses that are known, without a slash at their end."""

    urls: Mapping[Site, str] = field(default_factory=dict[Site, str])

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Sites:
        """Raises BadInput for a variable that holds no http or https address."""
        environ = os.environ if environ is None else environ
        urls: dict[Site, str] = {}
        for site, variable in VARIABLES.items():
            value = environ.get(variable, "").strip()
            if value:
                urls[site] = _canonical(value, variable)
        return cls(urls)

    def require(self, task: Task) -> None:
        """Raises BadInput naming the variables that *task* needs and that are not set."""
        missing = [VARIABLES[site] for site in dict.fromkeys(task.sites) if site not in self.urls]
        if missing:
            raise BadInput(
                f"task {task.id} plays on {', '.join(dict.fromkeys(task.sites))}: set {', '.join(missing)} to the "
                "address of your copy"
            )

    def fill(self, text: str, *, escape: bool = False) -> str:
        """*text* with addresses in the place of `__SHOPPING__` and the like. *escape*: it is a pattern.

        Raises BadInput naming the variable that is not set.
        """

        def address(match: re.Match[str]) -> str:
            site = _BY_NAME[match[1]]
            if site not in self.urls:
                raise BadInput(f"{match[0]} stands in the task, but {VARIABLES[site]} is not set")
            return re.escape(self.urls[site]) if escape else self.urls[site]

        return _PLACEHOLDER.sub(address, text)

    def neutral(self, text: str) -> str:
        """*text* with a placeholder in the place of every address of a site, local or published.

        So an answer that cites a local copy agrees with a reference that cites `http://www.reddit.com`.
        """
        for site in sorted(self.urls, key=lambda site: len(self.urls[site]), reverse=True):
            known = [re.escape(self.urls[site]), *(rf"https?://{re.escape(host)}" for host in PUBLISHED.get(site, ()))]
            text = re.sub(rf"(?:{'|'.join(known)})(?![\w:-])", f"__{site.upper()}__", text, flags=re.IGNORECASE)
        return text

    def origins(self, allow: Sequence[str] = ()) -> Origins:
        """These sites and what the rules of *allow* name, nothing else. Raises BadInput for a rule that is none."""
        origins = Origins.parse(allow)
        for url in self.urls.values():
            origins = origins.with_url(url)
        return origins


def _canonical(url: str, variable: str) -> str:
    """The address as the browser will spell it, so that patterns fit."""
    origin = origin_of(url)
    if origin is None:
        raise BadInput(f"{variable}={url!r} is no http or https address: write http://HOST:PORT")
    return f"{origin}{urlsplit(url).path.rstrip('/')}"
