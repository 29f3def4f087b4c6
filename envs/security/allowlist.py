"""Parses allowlist rules and matches origins against them. Rules say which servers a run may contact.

A browser reads many spellings as one host (`0x7f.1`, `127.1` and `１２７.0.0.1` are all 127.0.0.1), so strings cannot
be compared directly. A URL is first converted to its canonical origin by the rules of the WHATWG URL standard for http
and ws. A URL that cannot be parsed is refused, never guessed.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Final, Literal, NamedTuple
from urllib.parse import unquote

import idna

from envs.core.errors import BadInput
from envs.security.addresses import is_localhost

DEFAULT_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_SAME_AS: Final = {"ws": "http", "wss": "https"}
"""A WebSocket is matched like the page that could have opened it."""

SUBRESOURCES: Final = "subresources:"
ANY: Final = "*"

_URL = re.compile(r"([a-zA-Z][a-zA-Z0-9+.\-]*):[/\\]*([^/\\?#]*)")
_PORT = re.compile(r"[0-9]{1,5}")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_\-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]*|[0-9]+")


class Origin(NamedTuple):
    """Scheme, canonical host and port of a URL. URLs of one origin have equal values."""

    scheme: str
    """http, https, ws or wss."""
    host: str
    """Lower-case ASCII without a trailing dot; IPv6 without brackets."""
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}"

    @property
    def authority(self) -> str:
        """`host:port`, also for the scheme's usual port."""
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    @property
    def rule(self) -> str:
        """The rule that allows exactly this origin."""
        return str(self._replace(scheme=_SAME_AS.get(self.scheme, self.scheme)))


def origin_of(url: str) -> Origin | None:
    """The canonical origin of an absolute http, https, ws or wss URL; None for everything else.

    None also for a URL with credentials, because credentials can disguise the target of a link.
    """
    match = _URL.match(re.sub(r"[\t\r\n]", "", url.strip("\0\x20\x1f")))
    if match is None:
        return None
    scheme = match.group(1).lower()
    if scheme not in DEFAULT_PORTS or "@" in match.group(2):
        return None
    return _origin(scheme, match.group(2))


def check_address(url: str) -> None:
    """Raises BadInput if *url* is not the address of a page. The message says what to write instead and does not
    repeat a password."""
    origin = origin_of(url)
    if origin is None or origin.scheme not in ("http", "https"):
        raise BadInput(_address_error(url))


def _address_error(url: str) -> str:
    plain = url.strip()
    scheme, separator, rest = plain.partition("://")
    if separator and "@" in re.split(r"[/\\?#]", rest)[0]:
        redacted = f"{scheme}://…@{rest.rpartition('@')[2]}"
        problem = f"{redacted!r} is no http or https address without credentials"
        return f"{problem}: set http_credentials under [session] instead"
    problem = f"{plain!r} is no http or https address"
    suggestion = _suggestion(scheme.lower() if separator else "", rest if separator else plain.lstrip("/"))
    return f"{problem}: write {suggestion}" if suggestion else f"{problem}: write one such as https://shop.example"


def _suggestion(scheme: str, rest: str) -> str:
    """The address that was probably intended; empty if there is no good guess."""
    if scheme and not get_close_matches(scheme, ("http", "https"), n=1, cutoff=0.75):
        return ""
    host = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[^:/\\?#\s]+)(?::[0-9]{1,5})?(?:[/?#].*)?", rest)
    if host is None or not (scheme or "." in host[1] or ":" in host[1] or is_localhost(host[1])):
        return ""
    inner = is_localhost(host[1]) or _is_address(host[1].strip("[]"))
    address = f"{'http' if inner or scheme == 'http' else 'https'}://{rest}"
    return address if origin_of(address) else ""


def canonical_host(text: str) -> str | None:
    """The host as the browser reads it; None if it is no valid host. IPv6 has brackets in *text*, not in the result."""
    if text.startswith("["):
        return _ipv6(text[1:-1]) if text.endswith("]") else None
    name = _ascii_name(unquote(text, errors="replace"))
    if name is None:
        return None
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return _ipv4(labels)
    return name if len(name) <= 253 and all(_LABEL.fullmatch(label) for label in labels) else None


def _origin(scheme: str, authority: str) -> Origin | None:
    host_text, port_text = _split_port(authority)
    host = canonical_host(host_text)
    if host is None:
        return None
    if not port_text:
        return Origin(scheme, host, DEFAULT_PORTS[scheme])
    port = int(port_text) if _PORT.fullmatch(port_text) else 0
    return Origin(scheme, host, port) if 0 < port < 65_536 else None


def _split_port(authority: str) -> tuple[str, str]:
    match = re.fullmatch(r"(\[[^\]]*\]|[^:\[]*)(?::(.*))?", authority, re.DOTALL)
    return (match.group(1), match.group(2) or "") if match else (authority, "")


def _ascii_name(name: str) -> str | None:
    """Converts to lower-case ASCII by UTS 46 (full-width letters, ideographic dots, punycode) and removes one trailing
    dot."""
    if name.isascii():
        return name.lower().removesuffix(".") or None
    try:
        mapped = idna.uts46_remap(name, std3_rules=False).lower().removesuffix(".")
        return ".".join(_ascii_label(label) for label in mapped.split(".")) or None
    except (idna.IDNAError, UnicodeError):
        return None


def _ascii_label(label: str) -> str:
    if label.startswith("xn--"):
        idna.ulabel(label)  # raises for invalid punycode: the browser refuses the whole name then
    return label if label.isascii() else idna.alabel(label).decode()


def _ipv6(text: str) -> str | None:
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return None
    if address.scope_id is not None:
        return None
    mapped = address.ipv4_mapped
    return str(mapped if mapped is not None else address)


def _ipv4(labels: Sequence[str]) -> str | None:
    """The WHATWG IPv4 parser: one to four decimal, octal or hexadecimal numbers. The last fills the remaining bytes."""
    if len(labels) > 4:
        return None
    numbers = [_ipv4_number(label) for label in labels]
    if any(number is None for number in numbers):
        return None
    *front, last = (number for number in numbers if number is not None)
    if any(number > 255 for number in front) or last >= 256 ** (5 - len(labels)):
        return None
    value = last + sum(number << (8 * (3 - index)) for index, number in enumerate(front))
    return str(ipaddress.IPv4Address(value))


def _ipv4_number(label: str) -> int | None:
    if _NUMBER.fullmatch(label) is None or len(label) > 20:
        return None
    try:
        if label[:2].lower() == "0x":
            return int(label[2:] or "0", 16)
        return int(label, 8 if len(label) > 1 and label[0] == "0" else 10)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the allowlist. None means any."""

    host: str
    """ANY in a rule that covers subresources of every host."""
    subdomains: bool
    """True: covers subdomains of *host* at any depth, but not *host* itself."""
    scheme: str | None
    port: int | None
    subresources: bool = False
    """True: covers only passive loads, see :mod:`envs.security.subresources`; no page may be opened there."""

    def covers(self, host: str, port: int) -> bool:
        if self.port is not None and self.port != port:
            return False
        if self.host == ANY:
            return not is_localhost(host)
        return host.endswith("." + self.host) if self.subdomains else host == self.host

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = f":{self.port}" if self.port is not None else ""
        kind = SUBRESOURCES if self.subresources else ""
        return f"{kind}{self.scheme + '://' if self.scheme else ''}{'*.' if self.subdomains else ''}{host}{port}"


def parse_rule(text: str) -> Rule:
    """Parses a rule: `shop.example`, `*.shop.example`, `shop.example:8080`, `https://a.b:8443`, each optionally after
    `subresources:`, or `subresources:*`. Raises BadInput."""
    plain = text.strip()
    if not plain.startswith(SUBRESOURCES) or plain.removeprefix(SUBRESOURCES).isdigit():  # a host of that name, a port
        return _parse_host_rule(text)
    host, _, port = (rest := plain.removeprefix(SUBRESOURCES)).partition(":")
    if host != ANY:
        return replace(_parse_host_rule(rest), subresources=True)
    if port and not (_PORT.fullmatch(port) and 0 < int(port) < 65_536):
        raise BadInput(f"origin rule {text!r}: write subresources:* or subresources:*:8443")
    return Rule(ANY, False, None, int(port) if port else None, subresources=True)


def _parse_host_rule(text: str) -> Rule:
    scheme, separator, rest = text.strip().rpartition("://")
    scheme = scheme.lower()
    rest = rest.removesuffix("/") if separator else rest
    if separator and scheme not in ("http", "https"):
        raise BadInput(f"origin rule {text!r}: the scheme must be http or https")
    if re.search(r"[/\\?#@\s]", rest):
        raise BadInput(f"origin rule {text!r}: give a host, such as shop.example or https://shop.example:8443")
    subdomains = rest.startswith("*.")
    origin = _origin(scheme or "http", rest[2:] if subdomains else rest)
    if origin is None or (subdomains and _is_address(origin.host)):
        any_host = f"; {SUBRESOURCES}{ANY} allows passive loads from every public host" if rest == ANY else ""
        raise BadInput(f"origin rule {text!r}: it is not a host name; write shop.example or *.shop.example{any_host}")
    has_port = bool(_split_port(rest)[1])
    return Rule(origin.host, subdomains, scheme or None, origin.port if scheme or has_port else None)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Origins:
    """An allowlist: a tuple of rules. An empty one allows nothing."""

    rules: tuple[Rule, ...] = ()

    @classmethod
    def parse(cls, rules: Sequence[str]) -> Origins:
        """Parses rules. Raises BadInput with one line for the first invalid rule."""
        return cls(tuple(dict.fromkeys(parse_rule(rule) for rule in rules)))

    def with_url(self, url: str) -> Origins:
        """These rules plus a rule for exactly the origin of *url*. Raises BadInput if *url* has no origin."""
        origin = origin_of(url)
        if origin is None:
            raise BadInput(_address_error(url))
        rule = Rule(origin.host, False, _SAME_AS.get(origin.scheme, origin.scheme), origin.port)
        return self if rule in self.rules else Origins((*self.rules, rule))

    def allows(self, url: str) -> bool:
        """True if a rule covers *url*, an absolute http, https, ws or wss URL without credentials."""
        origin = origin_of(url)
        return origin is not None and self.allows_origin(origin)

    def allows_origin(self, origin: Origin) -> bool:
        scheme = _SAME_AS.get(origin.scheme, origin.scheme)
        return any(rule.scheme in (None, scheme) and rule.covers(origin.host, origin.port) for rule in self._full)

    def allows_tunnel(self, host: str, port: int) -> bool:
        """True if a rule covers a CONNECT request. *host* is canonical; the scheme inside is not known yet."""
        return any(rule.covers(host, port) for rule in self._full)

    def subresources(self, origin: Origin) -> Literal["no", "named", "any"]:
        """Whether passive loads from *origin* are allowed: `named` by a rule for its host, `any` by `subresources:*`
        alone."""
        rules = [rule for rule in self.rules if rule.subresources and rule.covers(origin.host, origin.port)]
        rules = [rule for rule in rules if rule.scheme in (None, origin.scheme)]
        return "no" if not rules else "any" if all(rule.host == ANY for rule in rules) else "named"

    @property
    def has_subresources(self) -> bool:
        """True if a rule covers subresources."""
        return any(rule.subresources for rule in self.rules)

    @property
    def _full(self) -> Iterator[Rule]:
        return (rule for rule in self.rules if not rule.subresources)

    def __str__(self) -> str:
        return ", ".join(str(rule) for rule in self.rules) or "nothing"
