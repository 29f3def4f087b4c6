"""The code site: Trac with the repository, tickets and wiki of an invented project, Tidemark."""

from envs.suites.sites.apps.code.site import CodeSite

__all__ = ["SITE"]

SITE = CodeSite()
