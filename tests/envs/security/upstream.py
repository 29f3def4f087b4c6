"""A forward proxy of a network, as a company has it: it alone resolves the names of sites, and it may want a login."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter


class Upstream:
    """Forwards requests in absolute form, and tunnels; records the head of each."""

    def __init__(self, sites: Mapping[str, int], login: str | None) -> None:
        self.sites = sites
        """Ports on this machine by `HOST:PORT`."""
        self.login = login
        self.port = 0
        self.heads: list[bytes] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def lines(self) -> list[str]:
        """The first lines of the requests."""
        return [head.partition(b"\r\n")[0].decode() for head in self.heads]

    async def handle(self, reader: Reader, writer: Writer) -> None:
        try:
            await self._serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _serve(self, reader: Reader, writer: Writer) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            self.heads.append(head)
            wanted = base64.b64encode((self.login or "").encode())
            if self.login is not None and b"Proxy-Authorization: Basic " + wanted not in head:
                writer.write(b"HTTP/1.1 407 Who are you\r\nContent-Length: 0\r\n\r\n")
                continue
            method, target, _ = head.split(b" ", 2)
            match = re.match(rb"(?:http://)?([^/]+)(/.*)?$", target)
            assert match is not None, head
            place = match[1].decode() if b":" in match[1] else f"{match[1].decode()}:80"
            if place not in self.sites:
                writer.write(b"HTTP/1.1 403 Not from here\r\nContent-Length: 0\r\n\r\n")
                continue
            server = await asyncio.open_connection("127.0.0.1", self.sites[place])
            if method == b"CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                server[1].write(
                    head.replace(target, match[2], 1).replace(b"Connection: keep-alive", b"Connection: close")
                )
            await asyncio.gather(_copy(reader, server[1]), _copy(server[0], writer))
            return


async def _copy(reader: Reader, writer: Writer) -> None:
    try:
        while block := await reader.read(65_536):
            writer.write(block)
            await writer.drain()
    finally:
        writer.close()


@asynccontextmanager
async def upstream(sites: Mapping[str, int], login: str | None = None) -> AsyncGenerator[Upstream]:
    """Runs the proxy on loopback."""
    proxy = Upstream(sites, login)
    server = await asyncio.start_server(proxy.handle, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
