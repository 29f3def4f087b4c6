"""Prints the names that each Chromium resolves. Run in a mount namespace whose resolver is this process.

unshare -m sh -c 'mount --bind FILE_SAYING_nameserver_127.0.0.1 /etc/resolv.conf && python
tests/envs/security/dns_leaks.py'
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
from pathlib import Path

from aiohttp import web
from playwright.async_api import BrowserContext

from envs.browser.chromium import Chromium
from envs.core.settings import SessionSettings
from envs.security.allowlist import Origins
from envs.security.allowlist_proxy import AllowlistProxy

PAGE = """<title>page</title><script>
fetch('http://fetch.leak.example/').catch(() => 0);
new WebSocket('ws://socket.leak.example');
const c = new RTCPeerConnection({iceServers: [{urls: 'stun:stun.leak.example:3478'}]});
c.createDataChannel('x'); c.createOffer().then(o => c.setLocalDescription(o));
try { new WebTransport('https://transport.leak.example:4433/') } catch {}
</script><link rel=dns-prefetch href="http://prefetch.leak.example">
<link rel=preconnect href="https://preconnect.leak.example">"""
_NAME = re.compile(rb"([a-z]+)\x04leak\x07example")


class Resolver(asyncio.DatagramProtocol):
    """Answers no query; records the names."""

    def __init__(self) -> None:
        self.resolved: set[str] = set()

    def datagram_received(self, data: bytes, addr: object) -> None:
        self.resolved |= {name.decode() for name in _NAME.findall(data)}


async def visit(context: BrowserContext, site: str) -> None:
    page = await context.new_page()
    await page.goto(site, timeout=60_000)
    await page.wait_for_timeout(4_000)  # nothing tells that a browser will not ask any more


async def main() -> None:
    resolver = Resolver()
    await asyncio.get_running_loop().create_datagram_endpoint(lambda: resolver, local_addr=("127.0.0.1", 53))
    app = web.Application()
    app.add_routes([web.get("/", served)])
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    site = f"http://127.0.0.1:{runner.addresses[0][1]}"
    async with Chromium.launch() as guarded, AllowlistProxy(Origins.parse([site])) as proxy:
        session = await guarded.session(SessionSettings(), proxy, Path(tempfile.mkdtemp()))
        await visit(session.context, site)
        report = {"guarded": sorted(resolver.resolved)}
    await bare(site)
    report["bare"] = sorted(resolver.resolved)
    json.dump(report, sys.stdout)
    await runner.cleanup()


async def served(_: web.Request) -> web.Response:
    return web.Response(text=PAGE, content_type="text/html")


async def bare(site: str) -> None:
    from playwright.async_api import async_playwright

    from envs.browser.chromium import find_chromium

    async with async_playwright() as playwright:
        path = find_chromium(playwright.chromium.executable_path)
        browser = await playwright.chromium.launch(executable_path=path, chromium_sandbox=False)
        await visit(await browser.new_context(), site)
        await browser.close()


if __name__ == "__main__":
    asyncio.run(main())
