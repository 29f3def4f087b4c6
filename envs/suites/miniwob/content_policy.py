"""Builds the content security policy of a task page: only the scripts of the package run on it.

Some task pages write typed text into the page as HTML (`terminal`, for example). Without a policy, typed markup such as
`<img src=x onerror="core.endEpisode(1)">` would run as script and forge the reward.
"""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

_COLOR_PICKER = b"/jscolor.min.js"
"""A library that evaluates its options from an attribute of the page's markup when the page loads."""


def content_security_policy(html: bytes) -> str:
    """The `Content-Security-Policy` header of a page: scripts of its own origin, and its inline scripts by hash.

    Inline event handlers, `javascript:` addresses and scripts that are added to the page later do not run, nor does
    `eval` on pages without the color picker.
    """
    evaluates = ["'unsafe-eval'"] if _COLOR_PICKER in html else []
    scripts = " ".join(["'self'", *evaluates, *(f"'sha256-{digest}'" for digest in inline_script_hashes(html))])
    return f"script-src {scripts}; object-src 'none'; base-uri 'none'; form-action 'self'"


def inline_script_hashes(html: bytes) -> tuple[str, ...]:
    """Base64 SHA-256 of each inline script, in document order (CSP Level 3, §6.7.3.3).

    A script is hashed as the browser decodes it: as UTF-8 where the page declares it, else as windows-1252. Both
    hashes of a script are listed where they differ.
    """
    scripts = [text for encoding in ("utf-8", "windows-1252") for text in _inline_scripts(html, encoding)]
    digests = (hashlib.sha256(text.encode()).digest() for text in scripts)
    return tuple(dict.fromkeys(base64.b64encode(digest).decode() for digest in digests))


def _inline_scripts(html: bytes, encoding: str) -> list[str]:
    # Browsers decode the five bytes that windows-1252 does not define as control characters (Encoding Standard, §9).
    text = html.decode(encoding, "replace" if encoding == "utf-8" else "surrogateescape")
    reader = _InlineScripts()
    # The HTML standard normalises line ends before a script is read.
    reader.feed(re.sub(r"\r\n?", "\n", text.translate(_CONTROLS)))
    reader.close()
    return reader.scripts


_CONTROLS = {0xDC00 + byte: byte for byte in (0x81, 0x8D, 0x8F, 0x90, 0x9D)}


class _InlineScripts(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.scripts: list[str] = []
        self._open: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "script" and "src" not in dict(attrs):
            self._open = []

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            self._open.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "script" and self._open is not None:
            self.scripts.append("".join(self._open))
            self._open = None
