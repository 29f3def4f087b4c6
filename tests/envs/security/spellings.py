"""Spellings of a secret value in pages and requests, written without the code under test."""

from __future__ import annotations

import base64
import codecs
import gzip
import html
import json
from collections.abc import Callable
from urllib.parse import quote, quote_plus

Spelling = Callable[[str], str]


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _joined(value: str, form: str, between: str = "") -> str:
    return between.join(form.format(byte) for byte in value.encode())


SPELLINGS: dict[str, Spelling] = {
    "plain": lambda v: v,
    "reversed": lambda v: v[::-1],
    "upper case": str.upper,
    "lower case": str.lower,
    "rot13": lambda v: codecs.encode(v, "rot13"),
    "spaced": " ".join,
    "a letter a line": "\n".join,
    "hyphenated": "-".join,
    "in table cells": " | ".join,
    "zero-width joined": "\u200b".join,
    "combining marks": lambda v: "".join(f"{char}\u0301" for char in v),
    "full width": lambda v: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in v),
    "percent": lambda v: quote(v, safe=""),
    "percent, form": quote_plus,
    "percent, every byte": lambda v: _joined(v, "%{:02X}"),
    "percent, twice": lambda v: quote(_joined(v, "%{:02x}"), safe=""),
    "HTML": html.escape,
    "HTML, decimal": lambda v: "".join(f"&#{ord(c)};" for c in v),
    "HTML, hexadecimal": lambda v: "".join(f"&#x{ord(c):x};" for c in v),
    "JSON": lambda v: json.dumps(v)[1:-1],
    "JSON, every character": lambda v: "".join(f"\\u{ord(c):04x}" for c in v),
    "JSON in JSON": lambda v: json.dumps(json.dumps({"v": v}))[1:-1],
    "JavaScript bytes": lambda v: _joined(v, "\\x{:02x}"),
    "JavaScript points": lambda v: "".join(f"\\u{{{ord(c):x}}}" for c in v),
    "escape()": lambda v: "".join(f"%u{ord(c):04X}" for c in v),
    "CSS": lambda v: "".join(f"\\{ord(c):06x}" for c in v),
    "CSS, short": lambda v: "".join(f"\\{ord(c):x} " for c in v),
    "octal escapes": lambda v: _joined(v, "\\{:03o}"),
    "quoted printable": lambda v: _joined(v, "={:02X}"),
    "base64": lambda v: _b64(v.encode()),
    "base64 after one byte": lambda v: _b64(b":" + v.encode()),
    "base64 after two bytes": lambda v: _b64(b"me" + v.encode() + b"!"),
    "base64 of URLs": lambda v: base64.urlsafe_b64encode(b">>" + v.encode()).decode().rstrip("="),
    "base64 twice": lambda v: _b64(_b64(v.encode()).encode()),
    "base64 of UTF-16": lambda v: _b64(v.encode("utf-16-le")),
    "base64 of the reverse": lambda v: _b64(v[::-1].encode()),
    "base64 reversed": lambda v: _b64(v.encode())[::-1],
    "base64, percent": lambda v: quote(_b64(b"??" + v.encode()), safe=""),
    "base32": lambda v: base64.b32encode(v.encode()).decode(),
    "base32 shifted": lambda v: base64.b32encode(b"abc" + v.encode()).decode().lower(),
    "hex": lambda v: v.encode().hex(),
    "HEX": lambda v: v.encode().hex().upper(),
    "hex with colons": lambda v: v.encode().hex(":"),
    "hex with 0x": lambda v: _joined(v, "0x{:02x}", ", "),
    "hex of UTF-16": lambda v: v.encode("utf-16-be").hex(),
    "hex reversed": lambda v: v.encode().hex()[::-1],
    "decimal codes": lambda v: _joined(v, "{}", " "),
    "octal codes": lambda v: _joined(v, "{:03o}", " "),
    "binary codes": lambda v: _joined(v, "{:08b}", " "),
}

PACKED: dict[str, Callable[[str], bytes]] = {
    "UTF-16": lambda v: v.encode("utf-16"),
    "UTF-16, odd offset": lambda v: b"x" + v.encode("utf-16-be"),
    "gzip": lambda v: gzip.compress(v.encode()),
    "gzip in multipart": lambda v: (
        b'--b\r\nContent-Disposition: form-data; name="f"\r\n\r\n' + gzip.compress(v.encode())
    ),
    "base64 of gzip": lambda v: base64.b64encode(gzip.compress(b'{"value": "%s"}' % v.encode())),
    "gzip of the reverse": lambda v: gzip.compress(v[::-1].encode() * 3),
}
"""Spellings that exist only in bytes, or that are searched for only in requests and files."""
