"""The evidence for the checks after the agent has stopped."""

from __future__ import annotations

from dataclasses import dataclass

from envs.security.allowlist import Origins
from envs.suites.webarena.accounts import Account
from envs.suites.webarena.evaluators.finding import FuzzyJudge
from envs.suites.webarena.pages import Pages
from envs.suites.webarena.request_log import SentRequest
from envs.suites.webarena.sites import Sites
from envs.suites.webarena.task import Site


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of one finished episode."""

    intent: str
    answer: str | None
    url: str
    """The address at which the agent stopped."""
    pages: Pages
    sent: tuple[SentRequest, ...]
    """The session's requests, in order."""
    sites: Sites
    origins: Origins
    """The origins that the session was allowed to access."""
    admin: Account
    """The account for requesting orders and reviews from the shop's API."""
    judge: FuzzyJudge
    task_sites: tuple[Site, ...] = ()
    """The sites of the task."""
