"""Sites with restricted access: a self-signed certificate, or HTTP Basic authentication."""

from __future__ import annotations

import base64
import ssl
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from envs.browser.chromium import Chromium
from envs.core.actions import Goto
from envs.core.errors import BadInput
from envs.core.settings import HttpCredentials, SessionSettings
from envs.security.allowlist import Origins
from envs.security.allowlist_proxy import AllowlistProxy
from tests.envs.browser.browsing import QUICK

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

WELCOME = base64.b64encode(b"ann:s3same:open").decode()


class Guarded(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        known = self.headers.get("Authorization") == f"Basic {WELCOME}"
        self.send_response(200 if known else 401)
        self.send_header("Content-Type", "text/html")
        if not known:
            self.send_header("WWW-Authenticate", 'Basic realm="staging"')
        self.end_headers()
        self.wfile.write(b"<p>come in</p>" if known else b"<p>who are you?</p>")

    def log_message(self, format: str, *args: object) -> None:
        """Keeps the test output quiet."""


class Open(Guarded):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<p>come in</p>")


def self_signed(folder: Path) -> Path:
    """A self-signed certificate of 127.0.0.1, with its key."""
    both = folder / "both.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    kept = ["-keyout", str(both), "-out", str(folder / "certificate.pem")]
    subprocess.run([*command, *kept], capture_output=True, check=True)
    with both.open("ab") as file:
        file.write((folder / "certificate.pem").read_bytes())
    return both


@contextmanager
def served(handler: type[BaseHTTPRequestHandler], certificate: Path | None = None) -> Generator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http{'s' if certificate else ''}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


async def seen(chromium: Chromium, folder: Path, origin: str, settings: SessionSettings) -> tuple[bool, str]:
    """(did it open, what it shows)"""
    async with AllowlistProxy(Origins.parse([origin])) as proxy:
        session = await chromium.session(settings, proxy, folder)
        try:
            result = await session.execute(Goto(url=f"{origin}/"))
            return result.ok, (await session.observe()).text
        finally:
            await session.close()


def credentials(origin: str) -> SessionSettings:
    return QUICK.model_copy(update={"http_credentials": HttpCredentials(origin=origin, value="env:STAGING")})


async def test_basic_authentication_is_answered_at_its_own_site_alone(
    guarded: Chromium, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAGING", "ann:s3same:open")
    with served(Guarded) as origin:
        assert "come in" in (await seen(guarded, tmp_path, origin, credentials(origin)))[1]
        elsewhere = await seen(guarded, tmp_path, origin, credentials("https://other.example"))
        assert "come in" not in elsewhere[1]


async def test_credentials_that_are_not_to_be_had_are_one_line(
    guarded: Chromium, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STAGING", raising=False)
    with pytest.raises(BadInput, match="set STAGING to USER:PASSWORD"):
        await seen(guarded, tmp_path, "http://127.0.0.1:9", credentials("http://127.0.0.1:9"))


async def test_a_certificate_of_its_own_is_taken_where_that_is_asked_for(guarded: Chromium, tmp_path: Path) -> None:
    both = self_signed(tmp_path)
    with served(Open, both) as origin:
        opened, text = await seen(guarded, tmp_path, origin, QUICK)
        assert not opened and "come in" not in text
        trusting = QUICK.model_copy(update={"ignore_https_errors": True})
        assert "come in" in (await seen(guarded, tmp_path, origin, trusting))[1]
