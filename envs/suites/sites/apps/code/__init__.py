"""The code site: Trac with the repository, tickets and wiki of an invented project, Tidemark."""

import sys
import warnings


def _hide_other_multipart() -> None:
    """Lets Trac read forms with `multipart`, or with `cgi` where that is missing. python-multipart, which web
    frameworks and MCP servers require, has a module of the same name with other functions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is deprecated there
        try:
            import multipart
        except ImportError:
            return
    if not hasattr(multipart, "parse_form_data"):
        sys.modules["multipart"] = None  # pyright: ignore[reportArgumentType] - makes the next import fail


_hide_other_multipart()

from envs.suites.sites.apps.code.site import CodeSite  # noqa: E402 - it imports Trac

__all__ = ["SITE"]

SITE = CodeSite()
