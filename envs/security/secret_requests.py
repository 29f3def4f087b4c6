"""Finds declared secrets in outgoing requests to origins outside the secrets' scopes.

:func:`leaks` is pure. :class:`LeakCheck` applies it to the requests that the allowlist proxy reads. It searches the
address, every header and the body for all spellings of :mod:`envs.security.secret_spellings`, packed ones included
(:mod:`envs.security.secret_bytes`). Not found: a value that a page encrypts, hashes, or spreads over several requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from envs.security.allowlist import origin_of
from envs.security.outgoing_requests import Outgoing
from envs.security.secrets import SecretVault

Part = Literal["method", "address", "headers", "body"]
CHECK: Final = "secrets"
"""The name of the check in the allowlist proxy."""
IN_THREAD_BYTES: Final = 20_000
"""Bodies above this are searched in a thread, so that the event loop is not blocked."""
MAX_REPORTED: Final = 10
"""Leaks that one action result names."""


@dataclass(frozen=True, slots=True)
class OutgoingRequest:
    """An outgoing request. Its `repr` shows method and origin only, because the rest may contain a value."""

    method: str
    url: str
    """Canonical, as in the browser."""
    headers: Sequence[tuple[bytes, bytes]] = ()
    """As sent."""
    body: bytes = b""
    """As sent; for a long body its beginning, as far as the caller keeps it."""

    def __repr__(self) -> str:
        return f"OutgoingRequest({self.method} {origin_of(self.url)})"


@dataclass(frozen=True, slots=True)
class Leak:
    """A secret that would leave its scope."""

    name: str
    origin: str
    """The target, with secrets masked; `this address` if the URL has no origin."""
    scope: str
    """The origins at which it may be used."""
    part: Part

    @property
    def message(self) -> str:
        """One line for the policy and for people, without the value."""
        return f"the {self.part} would carry secret {self.name} to {self.origin}; it may only be used at {self.scope}"


def leaks(vault: SecretVault, request: OutgoingRequest) -> tuple[Leak, ...]:
    """The secrets that *request* would carry out of their scopes: one entry per secret, with the first part that
    contains it."""
    barred = vault.barred_at(request.url)
    if not barred:
        return ()
    origin = vault.mask_host(str(origin_of(request.url) or "this address"))
    parts: dict[Part, frozenset[str]] = {
        "method": vault.names_in(request.method),
        "address": vault.names_in_host(request.url),
        "headers": _names_in_headers(vault, request.headers),
        "body": vault.names_in_bytes(request.body),
    }
    part_of: dict[str, Part] = {}
    for part, names in parts.items():
        part_of |= dict.fromkeys(names - part_of.keys(), part)
    scopes = dict(vault.scopes)
    return tuple(Leak(name, origin, scopes[name], part_of[name]) for name in barred if name in part_of)


def _names_in_headers(vault: SecretVault, headers: Sequence[tuple[bytes, bytes]]) -> frozenset[str]:
    """The secrets in the headers, which a browser writes as Latin-1 (`fetch`) or UTF-8 (cookies). Bytes that are no
    UTF-8 are left out of that reading, so that they do not hide the text around them."""
    raw = b"\n".join(b"%s: %s" % field for field in headers)
    readings = {raw.decode("latin-1"), raw.decode("utf-8", "ignore")}
    return frozenset[str]().union(*(vault.names_in(text, deep=True) for text in readings))


class LeakCheck:
    """A :data:`envs.security.outgoing_requests.Check` that stops requests which carry a declared secret out of its
    scope. It searches the first :data:`envs.security.outgoing_requests.BODY_BYTES` of a body or WebSocket message."""

    def __init__(self, vault: SecretVault) -> None:
        self._vault = vault
        self._reported: list[str] = []

    async def check(self, sent: Outgoing) -> str:
        request = OutgoingRequest(sent.method, sent.url, sent.fields, sent.body)
        if len(sent.body) > IN_THREAD_BYTES:  # a megabyte takes some tenths of a second
            stopped = await asyncio.to_thread(leaks, self._vault, request)
        else:
            stopped = leaks(self._vault, request)
        if not stopped:
            return ""
        messages = [f"a request was stopped: {leak.message}" for leak in stopped]
        self._reported += [message for message in messages if message not in self._reported]
        return "; ".join(messages)

    def drain(self) -> tuple[str, ...]:
        """The leaks stopped since the last call, each once, at most MAX_REPORTED lines. No line contains a value."""
        reported, self._reported = self._reported[:MAX_REPORTED], []
        return tuple(reported)
