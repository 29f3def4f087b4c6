"""Requests that a subresource rule admits: all ways out of a page, counted at the attacker's server.

The attacker uses TLS, as servers of subresources do, so the proxy must terminate the tunnels to read requests.
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
    WatchedProxy,
    attacker,
    hostile_site,
    try_everything,
)

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ROOM = SessionSettings(max_tabs=30, ignore_https_errors=True)
"""The page's Chromium does not trust the attacker's authority; the proxy does."""
ALL = {*MARKUP, *SCRIPTS, *TOP}
PASSIVE = {
    *("img", "srcset", "picture", "img-redirect", "input-image", "svg-image", "svg-filter", "new-image", "poster"),
    *("list-style", "css-background", "preload", "tls", "frame-data", "frame-blob"),
    *("script", "script-redirect", "module", "modulepreload", "import", "link-header", "worker-import-scripts"),
    *("css", "css-import", "css-font", "font-face", "video", "audio"),
}
NOT_TRIED = {"icon", "manifest", "preconnect", "turn-tcp", "click-ping", "speculation", "service-worker"}
"""The same as in the tests of the proxy."""
OTHERS = ALL - PASSIVE - NOT_TRIED
"""Documents of tabs and frames, forms, fetch and its like, beacons, reports, WebSockets, event sources, worklets."""


async def arrived(folder: Path, rule: str, *, expect: set[str]) -> tuple[Attacker, WatchedProxy, set[str]]:
    """Opens the hostile page behind *rule*. Returns attacker, proxy, and expected ways that did not arrive."""
    server, authorities = server_and_authorities(folder, [f"v-{way}.localhost" for way in sorted(ALL)])
    async with (
        attacker(server) as them,
        hostile_site(them, "https") as site,
        WatchedProxy(Origins.parse([site, rule]), authorities=authorities) as proxy,
        Chromium.launch(own_tls=True) as chromium,
    ):
        session = await chromium.session(ROOM, proxy, folder)
        await session.context.add_cookies(
            [{"name": "who", "value": "me", "url": f"https://v-{way}.localhost:{them.port}"} for way in ALL]
        )
        missing = await try_everything(session.context, site, them.arrived, expect)
        await proxy.seen.all_of(OTHERS if expect == PASSIVE else set(), 60)
        await session.close()
    return them, proxy, missing


async def test_a_rule_for_subresources_lets_out_passive_loads_and_nothing_else(tmp_path: Path) -> None:
    them, proxy, missing = await arrived(tmp_path, "subresources:*.localhost", expect=PASSIVE)
    assert not missing, "what passes must pass, or this would prove nothing"
    assert them.arrived.ways == PASSIVE
    assert not OTHERS - proxy.seen.ways, "these ways were not refused by the proxy: were they tried at all?"
    assert {request.method for request in them.requests} == {"GET"}
    assert {request.fields["sec-fetch-dest"].encode() for request in them.requests} <= subresources.PASSIVE
    assert not any("cookie" in request.fields for request in them.requests), "a load acts on nobody's account"


async def test_with_a_full_rule_everything_is_let_out(tmp_path: Path) -> None:
    """The first negative control: the page tries the ways that the rule above refuses."""
    unsure = {"shared-worker", "top-unload"}  # Chromium does not pass `ignore_https_errors` on to these two
    them, _, missing = await arrived(tmp_path, "*.localhost", expect=ALL - NOT_TRIED - unsure)
    assert not missing
    assert any("cookie" in request.fields for request in them.requests)


async def test_without_the_judgement_of_each_request_everything_is_let_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second negative control: the check inside the tunnel refuses them."""

    def no_problem(_request: object) -> str:
        return ""

    monkeypatch.setattr(subresources, "problem", no_problem)
    sockets = {"web-socket", "web-socket-tls", "worker-web-socket"}
    them, _, missing = await arrived(tmp_path, "subresources:*.localhost", expect=ALL - NOT_TRIED - sockets)
    assert not missing
    assert "POST" in {request.method for request in them.requests}
