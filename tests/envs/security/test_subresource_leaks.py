"""What a rule for subresources lets out: every way out of a page, counted at the attacker's server.

The attacker speaks TLS, as servers of subresources do, so that the boundary has to end the tunnels to see anything.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from envs.browser.chromium import Chromium
from envs.core.settings import SessionSettings
from envs.security import subresources
from envs.security.allowlist import Origins
from tests.envs.security.certificates import server_and_authorities
from tests.envs.security.leaks import (
    MARKUP,
    SCRIPTS,
    TOP,
    Attacker,
    WatchedBoundary,
    attacker,
    hostile_site,
    try_everything,
)

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(300)]

ROOM = SessionSettings(max_tabs=30, ignore_https_errors=True)
"""The page's own Chromium does not know the attacker's authority; the boundary does."""
ALL = {*MARKUP, *SCRIPTS, *TOP}
PASSIVE = {
    *("img", "srcset", "picture", "img-redirect", "input-image", "svg-image", "svg-filter", "new-image", "poster"),
    *("list-style", "css-background", "preload", "tls", "frame-data", "frame-blob"),
    *("script", "script-redirect", "module", "modulepreload", "import", "link-header", "worker-import-scripts"),
    *("css", "css-import", "css-font", "font-face", "video", "audio"),
}
NOT_TRIED = {"icon", "manifest", "preconnect", "turn-tcp", "click-ping", "speculation", "service-worker"}
"""As in the tests of the proxy."""
OTHERS = ALL - PASSIVE - NOT_TRIED
"""Documents of tabs and frames, forms, fetch and its like, beacons, reports, WebSockets, event sources, worklets."""


async def arrived(folder: Path, rule: str, *, expect: set[str]) -> tuple[Attacker, WatchedBoundary, set[str]]:
    """Lets the page do its worst behind *rule*; the attacker, the boundary, and what was expected to arrive in vain."""
    server, authorities = server_and_authorities(folder, [f"v-{way}.localhost" for way in sorted(ALL)])
    async with (
        attacker(server) as them,
        hostile_site(them, "https") as site,
        WatchedBoundary(Origins.parse([site, rule]), authorities=authorities) as boundary,
        Chromium.launch(own_tls=True) as chromium,
    ):
        session = await chromium.session(ROOM, boundary, folder)
        await session.context.add_cookies(
            [{"name": "who", "value": "me", "url": f"https://v-{way}.localhost:{them.port}"} for way in ALL]
        )
        missing = await try_everything(session.context, site, them.arrived, expect)
        await boundary.seen.all_of(OTHERS if expect == PASSIVE else set(), 60)
        await session.close()
    return them, boundary, missing


async def test_a_rule_for_subresources_lets_out_passive_loads_and_nothing_else(tmp_path: Path) -> None:
    them, boundary, missing = await arrived(tmp_path, "subresources:*.localhost", expect=PASSIVE)
    assert not missing, "what passes must pass, or this would prove nothing"
    assert them.arrived.ways == PASSIVE
    assert not OTHERS - boundary.seen.ways, "these ways were not refused by the boundary: were they tried at all?"
    assert {one.method for one in them.requests} == {"GET"}
    assert {one.fields["sec-fetch-dest"].encode() for one in them.requests} <= subresources.PASSIVE
    assert not any("cookie" in one.fields for one in them.requests), "a load acts on nobody's account"


async def test_with_a_full_rule_everything_is_let_out(tmp_path: Path) -> None:
    """The first negative control: the page does try the ways that the rule above holds back."""
    unsure = {"shared-worker", "top-unload"}  # Chromium does not pass `ignore_https_errors` on to these two
    them, _, missing = await arrived(tmp_path, "*.localhost", expect=ALL - NOT_TRIED - unsure)
    assert not missing
    assert any("cookie" in one.fields for one in them.requests)


async def test_without_the_judgement_of_each_request_everything_is_let_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second: it is the judgement inside the tunnel that holds them back."""
    monkeypatch.setattr(subresources, "problem", lambda request: "")
    sockets = {"web-socket", "web-socket-tls", "worker-web-socket"}
    them, _, missing = await arrived(tmp_path, "subresources:*.localhost", expect=ALL - NOT_TRIED - sockets)
    assert not missing
    assert "POST" in {one.method for one in them.requests}
