"""Computes the page state: a hash without volatile parts, by which loops and alignments are found.

An observation's `digest` is equal only for identical text. Observations of the same state may differ in a clock, a time
such as "36 s ago", a form token or the focus. The page state omits these and keeps contents (quantities, prices, dates,
names, values of fields).
"""

from __future__ import annotations

import hashlib
import re
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

_UNIT = r"(?:s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|weeks?|months?|years?)"
_VOLATILE: Final = re.compile(
    rf"""
      \b(?:\d+(?:[.,]\d+)?|an?|few|some)\s*{_UNIT}(?:\s*,?\s*\d+\s*{_UNIT})?\s+(?:ago|left|remaining)\b   # 36 s ago
    | \b(?:just|right)\s+now\b
    | \btime\s+left:?\s*[\d:.]+(?:\s*/\s*[\d:.]+)?\s*{_UNIT}?                    # Time left: 9 / 10sec
    | \b(?:generated|rendered|loaded|took|finished)\b(?:\s+\w+)?\s*(?:in|:)\s*\d+(?:\.\d+)?\s*(?:ms|s|seconds?)\b
    | \b\d{{1,2}}:\d{{2}}:\d{{2}}(?:[.,]\d+)?(?:\s*[ap]\.?m\.?)?                      # 10:32:05
    | \b[0-9a-f]{{8}}-[0-9a-f]{{4}}-[0-9a-f]{{4}}-[0-9a-f]{{4}}-[0-9a-f]{{12}}\b           # UUID
    | \b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{{16,}}\b                            # token, hash
    """,
    re.IGNORECASE | re.VERBOSE,
)
_REF: Final = re.compile(r"^\[\d+\]|(?<=[\s|])\[\d+\](?= \w)", re.MULTILINE)
FOCUSED: Final = re.compile(r" focused(?=$| |,)", re.MULTILINE)
"""The state of the control that has the focus, in the text of a page."""
_TOKEN_NAMES: Final = re.compile(
    r"_|ts|timestamp|rand|nonce|sid|cb|cachebuster|.*csrf.*|.*token|.*sess(?:ion)?_?id|__form_.*", re.IGNORECASE
)
"""Names of query parameters that are not part of the state."""


def page_state(url: str, text: str) -> str:
    """Returns 16 hex digits: a hash of address and text without their volatile parts."""
    return hashlib.sha256(f"{steady_url(url)}\n{steady_text(text)}".encode("utf-8", "replace")).hexdigest()[:16]


def steady_text(text: str) -> str:
    """Removes relative times, clocks, tokens, focus and refs from the *text* of an observation."""
    return _VOLATILE.sub("~", FOCUSED.sub("", _REF.sub("[]", text)))


def steady_url(url: str) -> str:
    """Normalises *url*: no tokens, query sorted by name, no final slash."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    query = sorted((name, value) for name, value in parse_qsl(parts.query, True) if not _TOKEN_NAMES.fullmatch(name))
    kept = f"?{urlencode(query)}" if query else ""
    fragment = f"#{parts.fragment}" if parts.fragment else ""
    return f"{parts.scheme}://{parts.netloc.lower()}{parts.path.rstrip('/')}{kept}{fragment}"
