"""What the observer says of a page: small pages and the exact text expected of them."""

from __future__ import annotations

import pytest
from playwright.async_api import Page

from envs.observer import Observer
from envs.settings import ObserveSettings
from tests.envs.conftest import Site

pytestmark = pytest.mark.browser

CASES = [
    ("text", "<h1>Orders</h1><p>Sold by   seller 3</p>", ["# Orders", "Sold by seller 3"]),
]


@pytest.mark.parametrize(("html", "lines"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
async def test_text(page: Page, html: str, lines: list[str]) -> None:
    await page.set_content(html)
    seen = await Observer(page, ObserveSettings()).observe()
    assert seen.text.splitlines() == lines


async def test_frames(page: Page, site: Site) -> None:
    site.pages = {
        "/": f'<iframe title=Pay src="{site.url("/in", host="localhost")}"></iframe>',
        "/in": "<button>Pay</button>",
    }
    await page.goto(site.url())
    seen = await Observer(page, ObserveSettings()).observe()
    assert seen.text.splitlines() == [
        f'--- frame 1 "Pay" {site.url("/in", host="localhost")}',
        '[1] button "Pay"',
        "--- end frame 1",
    ]
