"""The code site: Trac over a small project of ours, Tidemark, with its repository, tickets and wiki."""

from envs.suites.sites.apps.code.site import CodeSite

__all__ = ["SITE"]

SITE = CodeSite()
