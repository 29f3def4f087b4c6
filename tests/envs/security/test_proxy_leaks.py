"""The first promise: a page can send requests to allowed origins only. An attacker counts arrivals.

The attacker's page is served by the allowed origin. It runs in three settings: in a plain Chromium (shows which ways
work, UDP included), behind a proxy that allows all targets (shows that the proxy forwards each way), and behind one
that allows the page's own origin only.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.async_api import Browser

from envs.browser.chromium import Chromium
from envs.core.settings import SessionSettings
from envs.security.allowlist import Origins
from envs.security.allowlist_proxy import AllowlistProxy
from tests.envs.security.leaks import MARKUP, SCRIPTS, TOP, WatchedProxy, attacker, hostile_site, try_everything
from tests.timing import HANG_S

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ROOM = SessionSettings(max_tabs=30)

ALL = {*MARKUP, *SCRIPTS, *TOP}
UNUSED = {"icon", "manifest", "preconnect", "turn-tcp"}
"""Headless Chromium does not request these here; if it does, they must still not arrive."""
SWITCHED_OFF = {"click-ping", "speculation", "service-worker"}
"""Disabled in our Chromium: `--no-pings`, no speculation, service workers blocked in every session."""


async def test_without_the_proxy_most_ways_lead_out(chromium: Browser) -> None:
    async with attacker() as them, hostile_site(them) as site:
        context = await chromium.new_context()
        missing = await try_everything(context, site, them.arrived, ALL - UNUSED)
        await context.close()
    assert len(them.arrived.ways) >= 65
    assert not missing
    assert them.datagrams > 0, "no UDP was tried, so the test below would prove nothing about it"


async def test_what_is_allowed_passes_the_proxy(tmp_path: Path) -> None:
    async with (
        attacker() as them,
        hostile_site(them) as site,
        AllowlistProxy(Origins.parse([site, "*.localhost"])) as proxy,
        Chromium.launch() as chromium,
    ):
        session = await chromium.session(ROOM, proxy, tmp_path)
        missing = await try_everything(session.context, site, them.arrived, ALL - UNUSED - SWITCHED_OFF)
        await session.close()
    assert not missing
    assert them.datagrams == 0, "allowing a site allows no UDP: it cannot be judged"


async def test_nothing_leaves_but_to_allowed_origins(tmp_path: Path) -> None:
    async with (
        attacker() as them,
        hostile_site(them) as site,
        WatchedProxy(Origins.parse([site])) as proxy,
        Chromium.launch() as chromium,
    ):
        session = await chromium.session(ROOM, proxy, tmp_path)
        missing = await try_everything(session.context, site, proxy.seen, ALL - UNUSED - SWITCHED_OFF)
        await session.close()
    assert not missing, "these ways were not refused by the proxy: were they tried at all?"
    assert them.connections == 0, f"arrived: {sorted(them.arrived.ways)}"
    assert them.datagrams == 0


async def test_loopback_uses_the_proxy_whatever_playwright_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With this variable Playwright itself names no address that must use the proxy, and Chromium exempts loopback."""
    monkeypatch.setenv("PLAYWRIGHT_DISABLE_FORCED_CHROMIUM_PROXIED_LOOPBACK", "1")
    async with (
        attacker() as them,
        hostile_site(them) as site,
        AllowlistProxy(Origins.parse([site])) as proxy,
        Chromium.launch() as chromium,
    ):
        session = await chromium.session(ROOM, proxy, tmp_path)
        await session.page.goto(f"{site}/blank")
        urls = [f"http://{host}:{them.port}/" for host in ("127.0.0.1", "127.0.0.2", "localhost", "[::1]")]
        await session.page.evaluate("urls => Promise.allSettled(urls.map(url => fetch(url, {mode: 'no-cors'})))", urls)
        await session.close()
    assert them.connections == 0
    assert {url[:-1] for url in urls} <= set(proxy.blocked)


def _own_mounts() -> bool:
    """True if this user can mount a resolver configuration."""
    if os.geteuid() != 0:
        return False
    tried = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False)
    return tried.returncode == 0


@pytest.mark.skipif(not _own_mounts(), reason="needs root and mount namespaces")
def test_no_name_is_looked_up_for_a_page(tmp_path: Path) -> None:
    """Name resolution leaks data: `SECRET.evil.example` reaches the attacker's name server without a connection."""
    resolver = tmp_path / "resolv.conf"
    resolver.write_text("nameserver 127.0.0.1\n")
    script = shlex.join([sys.executable, "-m", "tests.envs.security.dns_leaks"])
    command = f"mount --bind {shlex.quote(str(resolver))} /etc/resolv.conf && exec {script}"
    root = Path(__file__).parents[3]
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", command], capture_output=True, text=True, timeout=HANG_S, cwd=root, check=False
    )
    assert done.returncode == 0, done.stderr
    names = json.loads(done.stdout)
    assert names["guarded"] == []
    assert len(names["bare"]) >= 3, "the resolver receives no queries, so this proves nothing"
