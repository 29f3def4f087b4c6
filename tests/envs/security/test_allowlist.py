"""Tables of host spellings, and a comparison with Chromium."""

from __future__ import annotations

import asyncio
import random

import pytest
from playwright.async_api import Page

from envs.core.errors import BadInput
from envs.security.allowlist import Origin, Origins, canonical_host, check_address, origin_of, parse_rule

LOOPBACK = [
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "0x7f.0.0.01",
    "0x7f.1",
    "0X7F.0x0.0x0.0x1",
    "0177.0.0.01",
    "2130706433",
    "0x7f000001",
    "017700000001",
    "127.0.0.1.",
    "１２７.0.0.1",
    "127。0．0｡1",
    "%31%32%37.0.0.1",
    "①②⑦.0.0.1",
    "[::ffff:127.0.0.1]",
    "[::FFFF:7f00:1]",
    "[0:0:0:0:0:ffff:7f00:0001]",
]

OTHERS = [
    ("LOCALHOST", "localhost"),
    ("localhost.", "localhost"),
    ("ｌｏｃａｌｈｏｓｔ", "localhost"),
    ("loc%61lhost", "localhost"),
    ("Shop.Example", "shop.example"),
    ("shop。example", "shop.example"),
    ("sh\u00adop.example", "shop.example"),
    ("bücher.example", "xn--bcher-kva.example"),
    ("BÜCHER.example", "xn--bcher-kva.example"),
    ("xn--bcher-kva.example", "xn--bcher-kva.example"),
    ("[::1]", "::1"),
    ("[0:0::1]", "::1"),
    ("my_host.example", "my_host.example"),
    ("1.2.3.4.example", "1.2.3.4.example"),
    ("0x7f.example", "0x7f.example"),
]

NO_HOSTS = [
    "",
    ".",
    "..",
    "a..b",
    " ",
    "a b",
    "a/b",
    "a<b",
    "a%00b",
    "%",
    "%2f",
    "a%2eb%40c",
    "[::1",
    "::1]",
    "[]",
    "[fe80::1%eth0]",
    "[127.0.0.1]",
    "256.0.0.1",
    "127.0.0.256",
    "1.2.3.4.5",
    "0x7g.1",
    "example.0x",
    "08.0.0.1",
    "4294967296",
    "1..2",
    "*",
    "*.example",
    "-a.example",
    "a-.example",
    "a" * 64 + ".example",
    ".".join(["a" * 60] * 5),
    "xn--\u00fc",
    "xn--１",
    "\ud800",
]


@pytest.mark.parametrize("host", LOOPBACK)
def test_every_spelling_of_loopback_is_loopback(host: str) -> None:
    assert canonical_host(host) == "127.0.0.1"
    assert Origins.parse(["127.0.0.1"]).allows(f"http://{host}:8080/x")
    assert not Origins.parse(["shop.example"]).allows(f"http://{host}/")


@pytest.mark.parametrize(("host", "expected"), OTHERS)
def test_hosts_are_canonical(host: str, expected: str) -> None:
    assert canonical_host(host) == expected


@pytest.mark.parametrize("host", NO_HOSTS)
def test_what_is_no_host_is_refused(host: str) -> None:
    assert canonical_host(host) is None
    assert origin_of(f"http://{host}/") is None or "/" in host


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://a.example", Origin("http", "a.example", 80)),
        ("HTTPS://a.example/x?y#z", Origin("https", "a.example", 443)),
        ("https://a.example:443/", Origin("https", "a.example", 443)),
        ("http://a.example:", Origin("http", "a.example", 80)),
        ("http://a.example:0080/", Origin("http", "a.example", 80)),
        ("ws://a.example:81/s", Origin("ws", "a.example", 81)),
        ("wss://a.example/s", Origin("wss", "a.example", 443)),
        ("  http://a.example  ", Origin("http", "a.example", 80)),
        ("ht\ntp://a.ex\tample/", Origin("http", "a.example", 80)),
        ("http:\\\\a.example\\x", Origin("http", "a.example", 80)),
        ("http:/a.example", Origin("http", "a.example", 80)),
        ("http:a.example", Origin("http", "a.example", 80)),
        ("http:////a.example", Origin("http", "a.example", 80)),
        ("http://[::1]:8080/", Origin("http", "::1", 8080)),
        ("http://a.example/@b.example", Origin("http", "a.example", 80)),
        ("http://a.example?@b.example", Origin("http", "a.example", 80)),
        ("http://a.example\\@b.example", Origin("http", "a.example", 80)),
        ("http://a.example#@b.example", Origin("http", "a.example", 80)),
        ("", None),
        ("a.example", None),
        ("//a.example", None),
        ("/path", None),
        ("http://", None),
        ("http://user@a.example/", None),
        ("http://user:pw@a.example/", None),
        ("http://a.example@b.example/", None),
        ("http://a.example:pw@b.example/", None),
        ("http://@a.example/", None),
        ("http://a.example:0/", None),
        ("http://a.example:65536/", None),
        ("http://a.example:8o/", None),
        ("http://a.example:80:80/", None),
        ("http://::1/", None),
        ("ftp://a.example/", None),
        ("file:///etc/passwd", None),
        ("file://a.example/x", None),
        ("data:text/html,http://a.example", None),
        ("javascript:location='http://a.example'", None),
        ("blob:http://a.example/1", None),
        ("view-source:http://a.example", None),
        ("filesystem:http://a.example/t/x", None),
        ("about:blank", None),
        ("chrome://settings", None),
        ("chrome-extension://a.example/", None),
        ("mailto:a@a.example", None),
        ("intent://a.example#Intent;end", None),
    ],
)
def test_origins_of_urls(url: str, expected: Origin | None) -> None:
    assert origin_of(url) == expected


@pytest.mark.parametrize(
    ("rule", "url", "allowed"),
    [
        ("shop.example", "http://shop.example/", True),
        ("shop.example", "https://shop.example/", True),
        ("shop.example", "https://shop.example:8443/", True),
        ("shop.example", "wss://shop.example/s", True),
        ("shop.example", "https://SHOP.example./", True),
        ("shop.example", "https://www.shop.example/", False),
        ("shop.example", "https://notshop.example/", False),
        ("shop.example", "https://shop.example.evil.example/", False),
        ("shop.example", "https://shop.examplé/", False),
        ("shop.example", "https://shop.example@evil.example/", False),
        ("shop.example", "https://evil.example/shop.example", False),
        ("shop.example", "https://evil.example#shop.example", False),
        ("shop.example", "ftp://shop.example/", False),
        ("shop.example", "https://ѕhop.example/", False),  # a Cyrillic s
        ("SHOP.Example.", "https://shop.example/", True),
        ("shop.example:8080", "http://shop.example:8080/", True),
        ("shop.example:8080", "https://shop.example:8080/", True),
        ("shop.example:8080", "http://shop.example/", False),
        ("http://shop.example", "http://shop.example/", True),
        ("http://shop.example", "ws://shop.example/", True),
        ("http://shop.example", "https://shop.example/", False),
        ("http://shop.example", "http://shop.example:81/", False),
        ("https://a.b:8443", "https://a.b:8443/", True),
        ("https://a.b:8443", "wss://a.b:8443/", True),
        ("https://a.b:8443", "https://a.b/", False),
        ("https://a.b:8443/", "https://a.b:8443/x", True),
        ("*.shop.example", "https://www.shop.example/", True),
        ("*.shop.example", "https://a.b.shop.example/", True),
        ("*.shop.example", "https://shop.example/", False),
        ("*.shop.example", "https://evilshop.example/", False),
        ("https://*.shop.example", "http://a.shop.example/", False),
        ("bücher.example", "https://xn--bcher-kva.example/", True),
        ("[::1]:8080", "http://[0::1]:8080/", True),
        ("[::1]", "http://127.0.0.1/", False),
        ("localhost", "http://127.0.0.1/", False),
        ("127.0.0.1", "http://localhost/", False),
        ("127.1", "http://2130706433/", True),
    ],
)
def test_rules(rule: str, url: str, allowed: bool) -> None:
    assert Origins.parse([rule]).allows(url) is allowed


@pytest.mark.parametrize(
    "rule",
    [
        "",
        " ",
        "*",
        "**.example",
        "a.*.example",
        "*.127.0.0.1",
        "http://",
        "://a.example",
        "ftp://a.example",
        "ws://a.example",
        "file:///etc",
        "a.example/path",
        "https://a.example/path",
        "a.example?x",
        "user@a.example",
        "https://user:pw@a.example",
        "a.example:0",
        "a.example:99999",
        "a.example:http",
        "a b",
        "a.example, b.example",
        "256.1.1.1",
        "http:a.example",
        "\ud800",
    ],
)
def test_rules_that_cannot_be_read_are_one_line(rule: str) -> None:
    with pytest.raises(BadInput) as error:
        Origins.parse(["good.example", rule])
    assert "\n" not in str(error.value)


def test_no_rules_allow_nothing() -> None:
    assert not Origins().allows("http://localhost/")
    assert str(Origins()) == "nothing"


def test_a_url_allows_exactly_its_own_origin() -> None:
    origins = Origins().with_url("HTTPS://Shop.Example/login?x")
    assert str(origins) == "https://shop.example:443"
    assert origins.allows("https://shop.example/other")
    assert not origins.allows("http://shop.example/")
    assert not origins.allows("https://shop.example:8443/")
    assert origins.with_url("https://shop.example/") is origins
    with pytest.raises(BadInput, match="no http or https address"):
        origins.with_url("file:///etc/passwd")


@pytest.mark.parametrize(
    ("url", "advice"),
    [
        ("shop.example", "write https://shop.example"),
        ("www.shop.example/a?b#c", "write https://www.shop.example/a?b#c"),
        ("shop.example:8443/x", "write https://shop.example:8443/x"),
        ("//shop.example/x", "write https://shop.example/x"),
        ("localhost:8000", "write http://localhost:8000"),
        ("localhost", "write http://localhost"),
        ("127.0.0.1:8000/x", "write http://127.0.0.1:8000/x"),
        ("[::1]:8000", "write http://[::1]:8000"),
        ("bücher.example", "write https://bücher.example"),
        ("htps://shop.example/x", "write https://shop.example/x"),
        ("htp://shop.example", "write https://shop.example"),
        ("ws://shop.example", "write one such as https://shop.example"),
        ("ftp://shop.example", "write one such as https://shop.example"),
        ("file:///etc/passwd", "write one such as https://shop.example"),
        ("file:/etc/passwd", "write one such as https://shop.example"),
        ("data:text/html,x", "write one such as https://shop.example"),
        ("javascript:alert(1)", "write one such as https://shop.example"),
        ("about:blank", "write one such as https://shop.example"),
        ("mailto:a@b.example", "write one such as https://shop.example"),
        ("the shop", "write one such as https://shop.example"),
        ("shop", "write one such as https://shop.example"),
        ("https://", "write one such as https://shop.example"),
        ("", "write one such as https://shop.example"),
        ("https://me:hunter2@shop.example/x", "set http_credentials under [session] instead"),
    ],
)
def test_an_address_without_a_scheme_is_suggested_with_one(url: str, advice: str) -> None:
    with pytest.raises(BadInput) as error:
        check_address(url)
    assert "no http or https address" in str(error.value) and str(error.value).endswith(advice)
    assert "hunter2" not in str(error.value) and "\n" not in str(error.value)
    if "write https" in advice or "write http:" in advice:
        check_address(advice.removeprefix("write "))


@pytest.mark.parametrize(
    "rule", ["shop.example", "*.shop.example", "https://a.b:8443", "a.b:1", "[::1]:8080", "http://[::1]:80"]
)
def test_a_rule_shows_as_it_is_written(rule: str) -> None:
    assert str(parse_rule(rule)) == rule


def _fuzz(seed: int, count: int) -> list[str]:
    """URLs combined from parts that parsers interpret differently."""
    rng = random.Random(seed)
    pieces = ["a.example", "127.0.0.1", "0x7f", "1", ".", "@", ":", "80", "/", "\\", "?", "#", "%2e", "%40", "[::1]"]
    pieces += ["\t", "\n", " ", "http:", "https://", "ws:", "//", "\u3002", "\u00ad", "\uff11", "ß", "xn--", "..", "%"]
    pieces += ["\u200d", "é", "_", "-", "0", "256", "[", "]", "::", "ffff", "\ufe0f", "ⓐ", "㏂", "\x7f", ";", "|", "^"]
    starts = ["http://", "https://", "http:", "ws://", "HTTP:\\\\", "wss:/", " http://"]
    return [rng.choice(starts) + "".join(rng.choices(pieces, k=rng.randint(1, 6))) for _ in range(count)]


CHROMIUM_PARSES = """urls => urls.map(url => {
    try {
        const u = new URL(url);
        return [u.protocol.slice(0, -1), u.hostname, u.port, u.username + u.password];
    } catch { return null; }
})"""


@pytest.mark.browser
async def test_chromium_agrees_with_every_origin_that_we_read(page: Page) -> None:
    """If we parse an origin, Chromium must use exactly that one; otherwise nothing is allowed anyway."""
    urls = _fuzz(7, 4_000)
    urls += [f"http://{host}/" for host in [*LOOPBACK, *(host for host, _ in OTHERS), *NO_HOSTS[:-1]]]
    async with asyncio.timeout(60):
        parsed = await page.evaluate(CHROMIUM_PARSES, urls)
    read = 0
    for url, theirs in zip(urls, parsed, strict=True):
        ours = origin_of(url)
        if ours is None:
            continue
        read += 1
        assert theirs is not None, f"{url!r}: we read {ours}, Chromium refuses it"
        scheme, host, port, credentials = theirs
        default = {"http": 80, "ws": 80, "https": 443, "wss": 443}[scheme]
        assert Origin(scheme, canonical_host(host) or "", int(port or default)) == ours, f"{url!r}"
        assert not credentials
    assert read > 300
