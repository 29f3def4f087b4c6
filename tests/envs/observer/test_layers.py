"""Dialogs and overlays: what is on top is shown first, and what it covers is counted instead of numbered."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
from playwright.async_api import Page

from envs.core.settings import ObserveSettings
from envs.observer.observer import Observer
from envs.observer.target import Point, Target
from tests.conftest import Site

pytestmark = pytest.mark.browser

PAGE: Final = "<nav><a href='#h'>Home</a><button>Menu</button></nav><main><p>Page text<input aria-label=Query></main>"
BEHIND: Final = "--- behind the dialog: 3 controls, not usable until it is closed"
CENTRED: Final = "position:fixed;left:300px;top:200px;width:400px;height:300px;background:#fff"
DIM: Final = "position:fixed;inset:0;background:rgba(0,0,0,.5)"

PAGES: Final = Path(__file__).parents[2] / "data" / "pages"
CASE: Final = re.compile(r"<!-- ([\w-]+)(?:: (\d+) behind)? -->\n(.*?)(?=<!-- |\Z)", re.DOTALL)


def cases(name: str) -> dict[str, tuple[str, int]]:
    """Markup that stands after PAGE, and the number of controls behind, by the name of the case."""
    text = (PAGES / name).read_text(encoding="utf-8")
    return {match[1]: (match[3], int(match[2] or 0)) for match in CASE.finditer(text)}


MODAL: Final = cases("dialogs.html")
OPEN: Final = cases("popups.html")
"""Popups beside which the page can be used."""


async def observed(page: Page, html: str) -> tuple[Observer, list[str]]:
    await page.set_content(f"<!doctype html><body>{html}")
    observer = Observer(page, ObserveSettings(timeout_s=30.0))
    return observer, (await observer.observe()).text.splitlines()


LISTEN: Final = """function () {
  this.addEventListener('click', (event) => { this.title = 'hit'; event.preventDefault(); });
}"""


async def hits(page: Page, observer: Observer, name: str) -> bool:
    """Whether a click on the control of this name reaches its element."""
    place = next(one.ref for one in observer._numbering.elements if one.key.name == name)
    target = await observer.resolve(place)
    assert isinstance(target, Target), target
    await target.call(LISTEN)
    point = await target.point()
    assert isinstance(point, Point), point
    await page.mouse.click(point.x, point.y)
    return await target.call("function () { return this.title; }") == "hit"


async def covered(page: Page, html: str, behind: int) -> list[str]:
    """The lines of a page under a dialog if they are wrong; none if only the dialog's button is numbered, and works."""
    observer, lines = await observed(page, PAGE + html)
    numbered = [one.key.name for one in observer._numbering.elements]
    right = lines[-1] == BEHIND.replace("3", str(behind), 1) and numbered == ["OK"] and "Page text" not in str(lines)
    works = right and await hits(page, observer, "OK")
    return [] if works else lines


async def left_open(page: Page, html: str) -> list[str]:
    """The lines of a page beside a popup if they are wrong; none if the whole page is numbered."""
    observer, lines = await observed(page, PAGE + html)
    numbered = {one.key.name for one in observer._numbering.elements}
    is_open = numbered >= {"Home", "Menu", "Query", "OK"} and not [line for line in lines if line.startswith("--- b")]
    return [] if is_open else lines


async def test_what_a_dialog_covers_is_one_line(page: Page) -> None:
    wrong = {name: lines for name, (html, behind) in MODAL.items() if (lines := await covered(page, html, behind))}
    assert wrong == {}
    assert len(MODAL) >= 20


async def test_a_popup_that_covers_nothing_leaves_the_page(page: Page) -> None:
    wrong = {name: lines for name, (html, _) in OPEN.items() if (lines := await left_open(page, html))}
    assert wrong == {}
    assert len(OPEN) >= 10


async def test_the_dialog_comes_first_and_what_is_above_it_stays(page: Page) -> None:
    toast = "<div style='position:fixed;right:0;bottom:0;z-index:99'>Saved <button>Undo</button></div>"
    dialog = f"<div style='{DIM}'></div><div role=dialog style='{CENTRED}'><h2>Sure?</h2><button>OK</button></div>"
    observer, lines = await observed(page, toast + PAGE + dialog)
    assert lines == ["# Sure?", '[1] button "OK"', 'Saved  [2] button "Undo"', BEHIND]
    assert await hits(page, observer, "Undo")


async def test_frames(page: Page, site: Site) -> None:
    """A dialog in a frame covers the frame; a dialog of the page covers frames of this and of other processes."""
    inner = f"{PAGE}<dialog id=d><button>OK</button></dialog><script>d.showModal()</script>"
    site.pages = {
        "/": f"<button>Top</button><iframe width=900 height=500 src='{site.url('/in', host='localhost')}'></iframe>",
        "/in": inner,
        "/over": f"{PAGE}<iframe src='/plain'></iframe><iframe src='{site.url('/plain', host='localhost')}'></iframe>"
        "<dialog id=d><button>OK</button></dialog><script>d.showModal()</script>",
        "/plain": "<button>Framed</button>",
    }
    observer = Observer(page, ObserveSettings(timeout_s=30.0))
    await page.goto(site.url())
    lines = (await observer.observe()).text.splitlines()
    # Chromium gives a frame of another process the focus later, or not at all: it is not compared.
    assert [line.removesuffix(" focused") for line in lines if not line.startswith(("--- frame", "--- end"))] == [
        '[1] button "Top"',
        '[2] button "OK"',
        BEHIND,
    ]
    await page.goto(site.url("/over"))
    assert (await observer.observe()).text.splitlines() == ['[1] button "OK" focused', BEHIND]


async def test_the_page_returns_when_the_dialog_closes(page: Page) -> None:
    observer, lines = await observed(page, PAGE + MODAL["dialog-element"][0])
    assert lines[-1] == BEHIND
    await page.evaluate("d.close()")
    assert 'Page text  [3] textbox "Query"' in (await observer.observe()).text
