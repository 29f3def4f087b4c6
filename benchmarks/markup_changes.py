"""Environments with changed markup: other ids, a banner on top, rows in reverse order, extra wrappers.

The change is made in the real page as it loads, by `markup_changes.js`; servers, checkers and scripts are the same.
"""

from __future__ import annotations

from pathlib import Path

from agent.run.environments import SuiteMaker
from agent.run.suites import known_suite
from envs.browser.chromium import Chromium
from envs.browser.session import BrowserSession
from envs.core.settings import SessionSettings
from envs.core.tasks import Suite
from envs.security.allowlist_proxy import AllowlistProxy
from envs.security.secrets import NO_SECRETS, SecretVault
from envs.suites.entry import Scoring

SCRIPT = Path(__file__).with_suffix(".js")


class RebuildingChromium(Chromium):
    """Opens sessions in another browser, in which every page is changed as it loads."""

    def __init__(self, browser: Chromium) -> None:
        super().__init__()
        self._other = browser

    async def session(
        self,
        settings: SessionSettings,
        boundary: AllowlistProxy,
        folder: Path,
        secrets: SecretVault = NO_SECRETS,
        *,
        device_scale: float = 1.0,
    ) -> BrowserSession:
        opened = await self._other.session(settings, boundary, folder, secrets, device_scale=device_scale)
        await opened.context.add_init_script(path=SCRIPT)
        return opened


def rebuilt(name: str) -> SuiteMaker:
    """The suite called *name*, on changed pages."""

    def make(chromium: Chromium, folder: Path, settings: SessionSettings) -> Suite:
        return known_suite(name).make(RebuildingChromium(chromium), folder, settings, Scoring())

    return make
