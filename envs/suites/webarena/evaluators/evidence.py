"""What there is to judge by once the agent has stopped."""

from __future__ import annotations

from dataclasses import dataclass

from envs.security.allowlist import Origins
from envs.suites.webarena.accounts import Account
from envs.suites.webarena.evaluators.finding import FuzzyJudge
from envs.suites.webarena.pages import Pages
from envs.suites.webarena.sent import Sent
from envs.suites.webarena.sites import Sites
from envs.suites.webarena.task import Site


@dataclass(frozen=True, slots=True)
class Evidence:
    """One finished episode."""

    intent: str
    answer: str | None
    url: str
    """Of the page that the agent stopped at."""
    pages: Pages
    sent: tuple[Sent, ...]
    """The session's requests, in the order in which they were made."""
    sites: Sites
    origins: Origins
    """What the session was allowed to reach."""
    admin: Account
    """Who may ask the shop's interface for orders and reviews."""
    judge: FuzzyJudge
    task_sites: tuple[Site, ...] = ()
    """Those that the task plays on."""
