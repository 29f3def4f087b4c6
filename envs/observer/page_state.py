"""What a page is, without what changes by itself: the state that loops and alignments are found by.

An observation's `digest` is equal only where the policy saw the same page to the letter. Two looks at one state often
differ all the same: a clock ticks, a comment is "36 s ago", a form carries a new token, the focus moved. The *state*
leaves these out; contents (quantities, prices, dates, names, what stands in a field) stay.
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
_FOCUSED: Final = re.compile(r" focused(?=$| |,)", re.MULTILINE)
_TOKEN_NAMES: Final = re.compile(
    r"_|ts|timestamp|rand|nonce|sid|cb|cachebuster|.*csrf.*|.*token|.*sess(?:ion)?_?id|__form_.*", re.IGNORECASE
)
"""Names of query parameters that carry no state."""


def page_state(url: str, text: str) -> str:
    """16 hex digits over address and text; equal where nothing but what changes by itself is different."""
    return hashlib.sha256(f"{steady_url(url)}\n{steady_text(text)}".encode("utf-8", "replace")).hexdigest()[:16]


def steady_text(text: str) -> str:
    """*text* of an observation without times that pass, tokens, focus and the numbers of elements."""
    return _VOLATILE.sub("~", _FOCUSED.sub("", _REF.sub("[]", text)))


def steady_url(url: str) -> str:
    """*url* without tokens, its query in order of names, without a final slash."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    query = sorted((name, value) for name, value in parse_qsl(parts.query, True) if not _TOKEN_NAMES.fullmatch(name))
    kept = f"?{urlencode(query)}" if query else ""
    fragment = f"#{parts.fragment}" if parts.fragment else ""
    return f"{parts.scheme}://{parts.netloc.lower()}{parts.path.rstrip('/')}{kept}{fragment}"
